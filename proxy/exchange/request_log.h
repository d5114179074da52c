// RequestLog: where a worker's requests end: counters, latencies and the access log. Confined to
// its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/time.h"
#include "proxy/exchange/recent_outcomes.h"
#include "proxy/exchange/request_facts.h"
#include "proxy/http/message.h"
#include "proxy/net/loop.h"
#include "proxy/observe/log_writer.h"
#include "proxy/observe/request_record.h"
#include "proxy/observe/request_tap.h"
#include "proxy/observe/shadow_caches.h"
#include "proxy/observe/stats.h"
#include "proxy/request/request_view.h"
#include "proxy/settings/runtime.h"
#include "proxy/store/object.h"

namespace encore::server {

// Receivers of requests in addition to log and counters; null: nobody. Borrowed.
struct RequestWatchers {
  RecentOutcomes* recent = nullptr;
  ShadowCaches* shadows = nullptr;
  ErrorNames* errors = nullptr;
  RequestTap* tap = nullptr;
};

class RequestLog {
 public:
  // All are borrowed. `writer` may be null: nothing is logged. `runtime` is the worker's present
  // one.
  RequestLog(net::Loop& loop, WorkerStats& stats, LogWriter* writer,
             const std::shared_ptr<const Runtime>& runtime, RequestWatchers watchers = {})
      : loop_(loop),
        stats_(stats),
        runtime_(runtime),
        recent_(watchers.recent),
        errors_(watchers.errors),
        tap_(watchers.tap),
        shadows_(watchers.shadows, stats),
        buffer_(writer) {}

  bool is_logging() const { return buffer_.enabled() || is_tapped_; }
  // True if plain hits need records; else they are only counted.
  bool wants_records() const { return is_logging() || runtime_->follows_requests; }
  // Counts a plain hit, as record() does.
  void count(const HitCount& hit, const http::RequestHead& head);
  // The same in two steps, for a hit that is taken when its head has gone: notes it among the
  // recent requests, and counts it.
  void note(const HitCount& hit, const http::RequestHead& head);
  void count_noted(const HitCount& hit);
  // Counts and logs a request that has ended.
  void record(const RequestRecord& record);
  // Records the same of an exchange, and informs the watchers.
  void record(const RequestRecord& record, const EndedExchange& ended);
  // Tells them of a plain hit.
  void tell_hit(const RequestView& view, const store::Object& object) {
    if (shadows_.is_on()) [[unlikely]] {
      tell_shadows_of_hit(view, object);
    }
  }
  // The caches that are simulated may be others from now on.
  void follow_shadows() { shadows_.follow(); }
  // Hands what was gathered to the writer, and to the caches that are simulated. Returns how many
  // records the writer has dropped. Between two requests: what is logged may change here.
  std::size_t hand_over() {
    is_tapped_ = tap_ != nullptr && tap_->is_on();
    shadows_.follow();
    shadows_.hand_over();
    return buffer_.hand_over();
  }

 private:
  void note_recent(RecentRequests::Note note, const http::RequestHead* head,
                   const net::Address* client);
  // Returns how long it took.
  Nanoseconds count_all(Outcome outcome, const HitCount& all);
  void log(const RequestRecord& record, Nanoseconds duration, const config::LogFormat& format,
           std::string& out);
  void tell_shadows(const RequestRecord& record, const EndedExchange& ended);
  void tell_shadows_of_hit(const RequestView& view, const store::Object& object);

  net::Loop& loop_;
  WorkerStats& stats_;
  const std::shared_ptr<const Runtime>& runtime_;
  RecentOutcomes* recent_;
  ErrorNames* errors_;
  RequestTap* tap_;
  bool is_tapped_ = false;  // an operator follows
  ShadowTap shadows_;
  LogBuffer buffer_;
};

}  // namespace encore::server
