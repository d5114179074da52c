// Exchange: one request that is not a plain hit, from its lookup to the last byte of its response.
// Its steps are its functions, in this order:
//
//   start -> decide_stored -> respond_stored | validate | fetch
//         -> fetch -> (join a transfer | start a Fetch), then, from the loop, on_transfer
//   on_transfer -> respond_shared | respond_validated | ask_again | respond_failure
//   respond_* -> pump -> finish
//
// Nothing that it starts answers within the call that starts it.
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
#include "proxy/http/variant_keys.h"
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
  // How to end the connection before the response has ended. A length or the chunks show a client
  // that some is missing; only where the end of the connection is the end of the body must that be
  // a reset, which also takes what the client has not read yet of responses before (RFC 9112 9.6).
  ClientConnection::After after_cut() const {
    return ends_with_connection_ ? ClientConnection::After::kAbort
                                 : ClientConnection::After::kClose;
  }
  // The client takes its response too slowly: it ends here.
  void cut();
  Sender& sender() { return sender_; }

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
  // What the origin is to be asked.
  struct Ask {
    bool whole = false;     // without the client's Range and conditions
    bool validate = false;  // whether what was found is still good
    bool share = false;     // with others, where may_lead() and may_join() say so
  };
  void start_fetch(const Ask& ask);
  bool join(const std::shared_ptr<Transfer>& fresh, bool enter);
  bool may_lead() const;
  bool may_join() const;
  void validate(bool in_background);
  void ask_again();
  void leave_transfer();
  void respond_stored(const store::ObjectRef& object, Outcome outcome);
  bool is_barred(const http::StoredMeta& meta) const;
  bool may_take(const Validated& validated);
  bool may_take(const SharedResponse& response);
  void respond_validated();
  void respond_shared();
  void respond_failure(int status, Outcome outcome, std::string_view detail);
  void count_late_join();
  void refuse_body(int status, std::string_view detail);

  // What a response is made from.
  struct Source {
    std::string_view head;              // status line and fields, without the empty line
    std::string_view more_fields = {};  // lines that are not in it
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
  bool has_client_gone();
  bool has_waited_long_enough(MonotonicTime now) const;
  bool is_body_too_slow(MonotonicTime now);
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
  bool alone_ = false;       // waits for nobody else any more
  std::uint32_t joins_ = 0;  // transfers of others that it waited for
  MonotonicTime joined_at_{};
  bool responding_ = false;  // the final head is on its way
  bool finished_ = false;
  bool interim_ = false;  // an interim response is on its way
  bool knocked_ = false;  // the response's first bytes went ahead of it
  bool keep_alive_ = true;
  bool ends_with_connection_ = false;  // the body under way has no other end

  // The request's body.
  bool body_done_ = true;
  std::uint64_t body_left_ = 0;
  std::uint64_t body_bytes_ = 0;
  http::ChunkedDecoder decoder_;
  MonotonicTime body_activity_{};
  // Since when, and from which byte, its pace is measured; zero: not at present.
  MonotonicTime pace_since_{};
  std::uint64_t pace_from_ = 0;

  Sender sender_;
  net::Deferred next_turn_;  // of a long body; or a transfer was joined that has something already
  std::shared_ptr<const SharedResponse> response_;  // what is being sent, if from a transfer
  std::string private_lines_;                       // of a validation's answer to this request
  http::VariantKeys variants_;
  http::CacheStatus cache_status_;
  std::string key_text_;
  RequestRecord record_;
};

}  // namespace encore::server
