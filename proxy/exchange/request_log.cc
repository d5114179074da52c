#include "proxy/exchange/request_log.h"

#include <string>

#include "proxy/exchange/shadow_requests.h"
#include "proxy/observe/access_log.h"
#include "proxy/request/request_context.h"
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

}  // namespace

void RequestLog::note_recent(const RequestRecord& record, const http::RequestHead* head,
                             std::uint32_t weight) {
  RecentRequests::Note note{.outcome = record.outcome,
                            .reason = record.detail,
                            .status = record.status,
                            .body_bytes = record.body_bytes,
                            .weight = weight,
                            .show_query = runtime_->config.admin.show_queries};
  if (head != nullptr) {
    note.method = head->method_text;
    note.target = head->target;
    note.host = head->fields.value(http::FieldId::kHost);
  }
  stats_.recent.note(note, loop_.wall_now());
}

void RequestLog::record(const RequestRecord& record, const http::RequestHead* head,
                        const net::Address& client) {
  stats_.requests[static_cast<std::size_t>(record.outcome)].add();
  stats_.bytes_to_clients.add(record.sent_bytes);
  const OutcomeClass group = class_of(record.outcome);
  stats_.sizes[static_cast<std::size_t>(group)].record(record.body_bytes);
  if (record.listener != nullptr) record.listener->count(group, record.sent_bytes);
  if (record.rule != nullptr) [[unlikely]] {
    record.rule->counts(stats_.number).count(group);
  }
  if (record.outcome != Outcome::kHit) {
    if (record.status >= kServerError) stats_.responses_5xx.add();
    if (is_kept_out(record.outcome)) {
      stats_.kept_out.add();
      stats_.kept_out_bytes.add(record.body_bytes);
    }
    if (group == OutcomeClass::kError && errors_ != nullptr) {
      stats_.errors.count(*errors_, record.outcome, record.detail);
    }
    note_recent(record, head, 1);
  } else if (stats_.recent.is_sampled()) {
    note_recent(record, head, RecentRequests::kHitSample);
  }
  const Nanoseconds duration = monotonic_now() - record.started;
  stats_.latency[static_cast<std::size_t>(group)].record(duration);
  if (!buffer_.enabled()) return;
  AccessRecord entry;
  entry.received = loop_.wall_now() - (loop_.now() - record.started);
  entry.duration = duration;
  const std::string client_text = client.ip_string();
  entry.client = client_text;
  entry.user = record.user;
  entry.status = record.status;
  entry.sent_bytes = record.sent_bytes;
  entry.body_bytes = record.body_bytes;
  entry.outcome = record.outcome;
  entry.origin = record.origin;
  entry.content_type = record.content_type;
  entry.version = "HTTP/1.1";
  entry.intercepted = record.intercepted;
  std::string whole;  // of what names a path alone, as its client means it
  if (head != nullptr) {
    entry.method = head->method_text;
    entry.url = head->target;
    if (head->version == http::Version::kHttp10) entry.version = "HTTP/1.0";
    entry.referer = head->fields.value(http::FieldId::kReferer);
    entry.user_agent = head->fields.value(http::FieldId::kUserAgent);
    entry.host = head->fields.value(http::FieldId::kHost);
    if (record.intercepted && head->target.starts_with('/')) {
      whole = "https://" + std::string(entry.host) + std::string(head->target);
      entry.url = whole;
    }
  }
  if (record.tls != nullptr) {
    entry.tls_version = record.tls->version;
    entry.tls_cipher = record.tls->cipher;
    entry.tls_server_name = record.tls->server_name;
    entry.tls_resumed = record.tls->resumed;
    entry.client_subject = record.tls->subject;
    entry.client_fingerprint = record.tls->fingerprint;
  }
  append_access_record(buffer_.text(), runtime_->access_format, entry);
  if (!buffer_.finish_record()) stats_.log_dropped.add();
}

void RequestLog::record(const RequestRecord& record, const EndedExchange& ended) {
  const RequestContext& request = ended.request;
  this->record(record, &request.head, request.client);
  if (shadows_.is_on()) tell_shadows(record, ended);
  if (recent_ == nullptr || !request.has_uri()) return;
  recent_->note(request.hash,
                {.outcome = record.outcome,
                 .reason = reason_of(ended),
                 .status = static_cast<std::uint16_t>(record.status)},
                loop_.wall_now());
}

void RequestLog::tell_shadows(const RequestRecord& record, const EndedExchange& ended) {
  const auto served = served_as(record.outcome, ended);
  const RequestContext& request = ended.request;
  if (!served || !shadows_.count(request.hash, {*served, record.body_bytes})) return;
  cache::ShadowRequest told =
      *served == ShadowTap::Served::kMissed
          ? shadow_request(*ended.response, request, record.body_bytes)
          : shadow_request(*ended.object, request.hash,
                           request.treatment_of(content_type_of(*ended.object)).admission);
  told.sent_bytes = record.body_bytes;
  told.now = loop_.now();
  shadows_.add(told);
}

void RequestLog::tell_shadows_of_hit(const RequestView& view, const store::Object& object) {
  const std::uint64_t bytes = object.body_size();
  if (!shadows_.count(view.hash, {ShadowTap::Served::kFresh, bytes})) return;
  cache::ShadowRequest told = shadow_request(
      object, view.hash,
      view.treatment == nullptr ? cache::AdmissionRule() : view.treatment->admission);
  told.sent_bytes = bytes;
  told.now = loop_.now();
  shadows_.add(told);
}

}  // namespace encore::server
