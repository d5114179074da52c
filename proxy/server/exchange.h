// Exchange: one request that is not a plain hit, from its lookup to the last byte of its response.
// Its steps are its functions, in this order:
//
//   start -> decide_stored -> respond_stored | validate | fetch
//         -> fetch -> (join a transfer | start a Fetch) -> on_transfer
//   on_transfer -> respond_shared | respond_validated | go_alone | respond_failure
//   respond_* -> pump -> finish
//
// Confined to its connection's worker.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "proxy/http/cache_status.h"
#include "proxy/http/chunked.h"
#include "proxy/http/conditional.h"
#include "proxy/http/range.h"
#include "proxy/server/client_connection.h"
#include "proxy/server/recycled.h"
#include "proxy/server/request_context.h"
#include "proxy/server/request_view.h"
#include "proxy/server/sender.h"
#include "proxy/server/transfer.h"
#include "proxy/server/worker.h"

namespace encore::server {

class Exchange final : public TransferReader, public Recycled<Exchange> {
 public:
  // `connection` outlives it. `found` is what the cache had.
  Exchange(ClientConnection& connection, std::shared_ptr<const RequestContext> request,
           CacheView found);
  ~Exchange() override;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void start();

  // --- from the connection ---
  // Bytes behind the head. Answers how many were used; the rest comes again after resume().
  std::size_t on_body(std::string_view bytes);
  void on_writable();
  void on_client_eof();
  // The connection ends before the response did.
  void on_connection_closing();
  void check_timeouts(MonotonicTime now);

 private:
  // TransferReader
  void on_transfer() override;
  void on_interim(std::string_view head) override;
  void on_upload_ready() override;

  // Steps.
  bool answer_locally();
  void decide_stored();
  void decide_part();
  void fetch();
  void start_fetch(bool whole, bool validate, bool joinable);
  void validate(bool in_background);
  void go_alone();
  void leave_transfer();
  void respond_stored(const store::ObjectRef& object, Outcome outcome);
  void respond_validated();
  void respond_shared();
  void respond_failure(int status, Outcome outcome, std::string_view detail);
  void count_late_join();
  void refuse_body(int status, std::string_view detail);

  // What a response is made from.
  struct Source {
    std::string_view head;  // status line and fields, without the empty line
    const http::StoredMeta* meta = nullptr;
    std::optional<std::uint64_t> length;
    store::BodyRef body;  // or
    std::string_view inline_body;
    bool whole = true;                      // ranges may be cut from it
    bool has_age = false;                   // Age is ours to say
    const std::string* trailers = nullptr;  // of a body whose length is not known
    std::string_view stored_trailers = {};  // of one whose length is
  };
  // Takes note in record and Cache-Status that a stored response is sent; holds it.
  Source source_of(const store::ObjectRef& object, Outcome outcome);
  void respond_part(const http::ContentRange& content, const http::ByteRange& range,
                    Outcome outcome);
  void send(const Source& source);
  bool send_conditional(const Source& source);
  bool send_ranges(const Source& source);
  void send_whole(const Source& source);
  void send_with_trailers(const Source& source);
  void open_body(const Source& source, std::uint64_t start);
  void add_content(const Source& source, std::uint64_t begin, std::uint64_t end);
  void add_tail(const Source& source, bool chunked, std::string& head);
  http::Validators validators_of(const Source& source) const;

  void pump();
  void finish(ClientConnection::After after);
  ClientConnection::After after_response() const;
  std::shared_ptr<const std::string> shared_key() const { return {request_, &request_->key}; }
  bool is_get() const { return request_->head.method == http::Method::kGet; }
  bool is_head() const { return request_->head.method == http::Method::kHead; }
  Worker& worker() const { return connection_.worker(); }
  MonotonicTime now() const { return connection_.worker().loop().now(); }

  ClientConnection& connection_;
  const std::shared_ptr<const RequestContext> request_;
  CacheView found_;
  std::shared_ptr<Transfer> transfer_;
  bool first_reader_ = false;
  bool joined_late_ = false;
  bool collapsed_ = false;
  bool alone_ = false;       // asked for itself after a transfer that could not be shared
  bool responding_ = false;  // the final head is on its way
  bool finished_ = false;
  bool interim_ = false;  // an interim response is on its way
  bool keep_alive_ = true;

  // The request's body.
  bool body_done_ = true;
  std::uint64_t body_left_ = 0;
  std::uint64_t body_bytes_ = 0;
  http::ChunkedDecoder decoder_;
  MonotonicTime body_activity_{};

  Sender sender_;
  net::Deferred more_;                              // the next turn of a long body
  std::shared_ptr<const SharedResponse> response_;  // what is being sent, if from a transfer
  http::CacheStatus cache_status_;
  std::string key_text_;
  RequestRecord record_;
};

}  // namespace encore::server
