#include "proxy/exchange/request_log.h"

#include <string>
#include <utility>

#include "proxy/exchange/shadow_requests.h"
#include "proxy/observe/access_log.h"
#include "proxy/observe/request_steps.h"
#include "proxy/request/request_context.h"
#include "proxy/transfer/not_stored.h"
#include "proxy/transfer/response.h"

namespace encore::server {
namespace {

// Why a response may not be stored; of a request that a rule keeps from the cache nobody has asked.
http::StoreReason reason_of(const EndedExchange& ended) {
  if (ended.response == nullptr) return http::StoreReason::kOk;
  const bool kept_out = ended.request.key.empty() && ended.request.rule != nullptr;
  return kept_out ? http::StoreReason::kRule : ended.response->reason;
}

constexpr int kServerError = 500;

bool is_kept_out(Outcome outcome) {
  return outcome == Outcome::kFirstRequest || outcome == Outcome::kNotAdmitted;
}

std::string ip_text(const RequestRecord& record) {
  return record.client == nullptr ? std::string() : record.client->ip_string();
}

// For who follows requests: the last of the steps.
void tell_end(const RequestRecord& record, const Redaction& redaction) {
  const http::RequestHead* const head = record.head;
  std::string storage;
  const std::string_view url =
      head == nullptr ? std::string_view("?") : redaction.url(head->target, storage);
  log_step(record.request_id,
           {head == nullptr ? std::string_view("?") : head->method_text, " ", url, " of ",
            ip_text(record), " ended: ", to_string(record.outcome),
            record.detail.empty() ? "" : "/", record.detail, ", status ",
            std::to_string(record.status), ", ", std::to_string(record.sent_bytes), " bytes"});
}

}  // namespace

void RequestLog::note_recent(RecentRequests::Note note, const http::RequestHead* head,
                             const net::Address* client) {
  const std::string name = client == nullptr ? std::string() : client->client_string();
  note.client = name;
  note.show_query = runtime_->config.admin.show_queries;
  std::string storage;
  if (head != nullptr) {
    note.method = head->method_text;
    note.target = runtime_->redaction.url(head->target, storage);
    note.host = head->fields.value(http::FieldId::kHost);
  }
  stats_.recent.note(note, loop_.wall_now());
}

// The outcome of a plain hit is a constant.
[[gnu::always_inline]] inline Nanoseconds RequestLog::count_all(Outcome outcome,
                                                                const HitCount& all) {
  stats_.requests[static_cast<std::size_t>(outcome)].add();
  stats_.bytes_to_clients.add(all.sent_bytes);
  loop_.shares().count_response(all.sent_bytes);
  const OutcomeClass group = class_of(outcome);
  stats_.sizes[static_cast<std::size_t>(group)].record(all.body_bytes);
  if (all.listener != nullptr) all.listener->count(group, all.sent_bytes);
  if (all.rule != nullptr) [[unlikely]] {
    all.rule->counts(stats_.number).count(group);
  }
  // A clock of its own: by the turn's a hit would take no time.
  const Nanoseconds duration = monotonic_now() - all.started;
  stats_.latency[static_cast<std::size_t>(group)].record(duration);
  return duration;
}

void RequestLog::count(const HitCount& hit, const http::RequestHead& head) {
  count_all(Outcome::kHit, hit);
  note(hit, head);
}

void RequestLog::count_noted(const HitCount& hit) { count_all(Outcome::kHit, hit); }

void RequestLog::note(const HitCount& hit, const http::RequestHead& head) {
  if (stats_.recent.is_sampled()) [[unlikely]] {
    note_recent({.outcome = Outcome::kHit,
                 .status = hit.status,
                 .body_bytes = hit.body_bytes,
                 .weight = RecentRequests::kHitSample},
                &head, hit.client);
  }
}

void RequestLog::record(const RequestRecord& record) {
  const Nanoseconds duration = count_all(record.outcome, {.started = record.started,
                                                          .status = record.status,
                                                          .sent_bytes = record.sent_bytes,
                                                          .body_bytes = record.body_bytes,
                                                          .listener = record.listener,
                                                          .rule = record.rule});
  const bool is_hit = record.outcome == Outcome::kHit;
  if (!is_hit) {
    if (record.status >= kServerError) stats_.responses_5xx.add();
    if (is_kept_out(record.outcome)) {
      stats_.kept_out.add();
      stats_.kept_out_bytes.add(record.body_bytes);
    }
    if (class_of(record.outcome) == OutcomeClass::kError && errors_ != nullptr) {
      stats_.errors.count(*errors_, record.outcome, record.detail);
    }
  }
  if (!is_hit || stats_.recent.is_sampled()) {
    note_recent({.outcome = record.outcome,
                 .reason = record.detail,
                 .status = record.status,
                 .body_bytes = record.body_bytes,
                 .weight = is_hit ? RecentRequests::kHitSample : 1},
                record.head, record.client);
  }
  if (runtime_->follows_requests) [[unlikely]] {
    tell_end(record, runtime_->redaction);
  }
  if (buffer_.enabled()) log(record, duration, *runtime_->config.log.format, buffer_.text());
  if (is_tapped_) [[unlikely]] {
    std::string line;
    log(record, duration, config::LogFormat(), line);
    tap_->add(std::move(line));
  }
}

void RequestLog::log(const RequestRecord& record, Nanoseconds duration,
                     const config::LogFormat& format, std::string& out) {
  const http::RequestHead* const head = record.head;
  const std::string client = ip_text(record);
  LoggedRequest logged{.record = record,
                       .received = loop_.wall_now() - (loop_.now() - record.started),
                       .duration = duration,
                       .client = client,
                       .url = head == nullptr ? std::string_view() : head->target};
  std::string whole;  // the URL for a target that is a path alone, as its client means it
  if (record.intercepted && logged.url.starts_with('/')) {
    whole.append("https://").append(logged.field(http::FieldId::kHost)).append(logged.url);
    logged.url = whole;
  }
  append_access_record(out, format, logged, runtime_->redaction);
  if (&out == &buffer_.text()) stats_.log_dropped.add(buffer_.finish_record(logged.received));
}

void RequestLog::record(const RequestRecord& record, const EndedExchange& ended) {
  const RequestContext& request = ended.request;
  this->record(record);
  if (shadows_.is_on()) tell_shadows(record, ended);
  if (recent_ == nullptr || !request.has_uri()) return;
  recent_->note(request.hash,
                {.outcome = record.outcome,
                 .reason = reason_of(ended),
                 .status = static_cast<std::uint16_t>(record.status),
                 .unfollowed = ended.response == nullptr ? RedirectRefusal::kNone
                                                         : ended.response->unfollowed,
                 .was_overtaken = record.detail == kOvertaken},
                loop_.wall_now());
}

void RequestLog::tell_shadows(const RequestRecord& record, const EndedExchange& ended) {
  const auto served = served_as(record.outcome, ended);
  const RequestContext& request = ended.request;
  if (!served || !shadows_.count(request.hash, {*served, record.body_bytes})) return;
  cache::ShadowRequest told =
      *served == ShadowTap::Served::kMissed
          ? shadow_request(*ended.response, request, record.body_bytes)
          : shadow_request(
                *ended.object, request.hash,
                request.policy_for_content_type(content_type_of(*ended.object)).admission);
  told.sent_bytes = record.body_bytes;
  told.now = loop_.now();
  shadows_.add(told);
}

void RequestLog::tell_shadows_of_hit(const RequestView& view, const store::Object& object) {
  const std::uint64_t bytes = object.body_size();
  if (!shadows_.count(view.hash, {ShadowTap::Served::kFresh, bytes})) return;
  cache::ShadowRequest told = shadow_request(
      object, view.hash,
      view.request_policy == nullptr ? cache::AdmissionRule() : view.request_policy->admission);
  told.sent_bytes = bytes;
  told.now = loop_.now();
  shadows_.add(told);
}

}  // namespace encore::server
