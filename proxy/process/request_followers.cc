#include "proxy/process/request_followers.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace encore::server {
namespace {

AdminResponse records_response(const RequestTap::RecordBatch& taken) {
  std::string body =
      fmt::format("{{\"next\":{},\"dropped\":{},\"records\":[", taken.next, taken.dropped);
  for (const std::string& line : taken.lines) {
    if (!body.ends_with('[')) body += ',';
    body += line;
  }
  body += "]}\n";
  AdminResponse response;
  response.body = std::move(body);
  response.content_type = "application/json";
  response.fields.emplace_back("Cache-Control", "no-store");
  response.fields.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

AdminResponse too_many() {
  AdminResponse response;
  response.status = 503;
  response.body = fmt::format("503 Service Unavailable\n{} follow the requests already.\n",
                              RequestFollowers::kMost);
  response.fields.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace

void RequestFollowers::add(std::optional<std::uint64_t> from, AdminReply to, MonotonicTime now) {
  if (waiting_.size() >= kMost) return to.send(too_many());
  tap_.set_on(!ended_);
  // A larger number is of a process that this one has replaced.
  const std::uint64_t next = tap_.next();
  Waiting waiting{
      .from = std::min(from.value_or(next), next), .to = std::move(to), .until = now + kPatience};
  leased_until_ = waiting.until + kLease;
  if (!answer(waiting, ended_)) waiting_.push_back(std::move(waiting));
}

void RequestFollowers::look(MonotonicTime now) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    at = answer(*at, now >= at->until) ? waiting_.erase(at) : std::next(at);
  }
  if (!waiting_.empty() || !leased_until_ || now < *leased_until_) return;
  leased_until_.reset();
  tap_.set_on(false);
}

void RequestFollowers::end() {
  ended_ = true;
  tap_.set_on(false);
  for (Waiting& waiting : waiting_) (void)answer(waiting, true);
  waiting_.clear();
}

bool RequestFollowers::answer(Waiting& waiting, bool is_over) {
  const RequestTap::RecordBatch taken = tap_.take(waiting.from, kRecordsMax);
  if (!is_over && taken.lines.empty() && taken.dropped == 0) return false;
  waiting.to.send(records_response(taken));
  return true;
}

}  // namespace encore::server
