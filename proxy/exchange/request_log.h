// RequestLog: where a worker's requests end: counters, latencies and the access log. Confined to
// its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/time.h"
#include "proxy/http/message.h"
#include "proxy/net/address.h"
#include "proxy/net/loop.h"
#include "proxy/observe/log_writer.h"
#include "proxy/observe/outcome.h"
#include "proxy/observe/stats.h"
#include "proxy/request/client_tls.h"
#include "proxy/request/request_context.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

// What a request came to.
struct RequestRecord {
  Outcome outcome = Outcome::kInternal;
  MonotonicTime started{};
  int status = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t body_bytes = 0;
  std::string_view origin;
  std::string_view content_type;
  std::string_view user;           // who has logged in; empty: nobody
  const ClientTls* tls = nullptr;  // of its client with us; null: none
  bool intercepted = false;        // it came inside a CONNECT that is decrypted
  std::string_view detail = {};    // why, as Cache-Status says it; empty: the outcome says it all

  // Takes what is known of who has asked. Borrowed.
  void tell_of(const RequestContext& request);
};

class RequestLog {
 public:
  // All are borrowed. `writer` may be null: nothing is logged. `runtime` is the worker's present
  // one.
  RequestLog(net::Loop& loop, WorkerStats& stats, LogWriter* writer,
             const std::shared_ptr<const Runtime>& runtime)
      : loop_(loop), stats_(stats), runtime_(runtime), buffer_(writer) {}

  bool is_logging() const { return buffer_.enabled(); }
  // Counts and logs a request that has ended. `head` may be null where none could be parsed.
  void record(const RequestRecord& record, const http::RequestHead* head,
              const net::Address& client);
  // Hands what was gathered to the writer. False where it was dropped.
  bool hand_over() { return buffer_.hand_over(); }

 private:
  void note_recent(const RequestRecord& record, const http::RequestHead* head,
                   std::uint32_t weight);

  net::Loop& loop_;
  WorkerStats& stats_;
  const std::shared_ptr<const Runtime>& runtime_;
  LogBuffer buffer_;
};

}  // namespace encore::server
