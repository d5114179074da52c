// RequestLog: where a worker's requests end: counters, latencies and the access log. Confined to
// its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/time.h"
#include "proxy/exchange/recent_outcomes.h"
#include "proxy/exchange/request_record.h"
#include "proxy/http/message.h"
#include "proxy/net/address.h"
#include "proxy/net/loop.h"
#include "proxy/observe/log_writer.h"
#include "proxy/observe/stats.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

class RequestLog {
 public:
  // All are borrowed. `writer` may be null: nothing is logged. `recent` may be null: nothing is
  // noted. `runtime` is the worker's present one.
  RequestLog(net::Loop& loop, WorkerStats& stats, LogWriter* writer,
             const std::shared_ptr<const Runtime>& runtime, RecentOutcomes* recent = nullptr)
      : loop_(loop),
        stats_(stats),
        runtime_(runtime),
        recent_(recent),
        buffer_(writer) {}

  bool is_logging() const { return buffer_.enabled(); }
  // Counts and logs a request that has ended. `head` may be null where none could be parsed.
  void record(const RequestRecord& record, const http::RequestHead* head,
              const net::Address& client);
  // The same of an exchange, whose outcome is noted, too.
  void record(const RequestRecord& record, const EndedExchange& ended);
  // Hands what was gathered to the writer. False where it was dropped.
  bool hand_over() { return buffer_.hand_over(); }

 private:
  void note_recent(const RequestRecord& record, const http::RequestHead* head,
                   std::uint32_t weight);

  net::Loop& loop_;
  WorkerStats& stats_;
  const std::shared_ptr<const Runtime>& runtime_;
  RecentOutcomes* recent_;
  LogBuffer buffer_;
};

}  // namespace encore::server
