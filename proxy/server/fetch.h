// Fetch: one request to an origin and its response, from the connection to the last byte. It feeds
// a Transfer and, where the response is admitted, the cache. It lives by itself: whoever asked may
// be gone before it ends.
//
//   start -> acquire (pool | resolve, connect) -> send -> on_data -> head -> body -> end
//
// Confined to its worker.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cache/types.h"
#include "proxy/http/chunked.h"
#include "proxy/http/freshness.h"
#include "proxy/http/parser.h"
#include "proxy/http/range.h"
#include "proxy/net/connector.h"
#include "proxy/net/resolver.h"
#include "proxy/net/stream.h"
#include "proxy/net/timer.h"
#include "proxy/server/inflight.h"
#include "proxy/server/origin_line.h"
#include "proxy/server/recycled.h"
#include "proxy/server/request_context.h"
#include "proxy/server/response.h"
#include "proxy/server/transfer.h"
#include "proxy/store/body.h"

namespace encore::server {

class Worker;

// What is asked for, and for whom.
struct FetchPlan {
  bool whole = false;       // without the client's Range and conditions
  bool in_table = false;    // others may join
  bool background = false;  // nobody waits
  bool any_resident = false;
  bool has_upload = false;  // the first reader brings a body
  store::ObjectRef stored;  // to be validated; empty: none
  MonotonicTime stored_fresh_until{};
  store::ObjectRef completes;  // a stored part: the rest of it is asked for; empty: none
};

// Whether a response to a plain GET can be made of this stored part and what the origin sends
// behind it: its beginning, with a strong entity tag, and no larger than `bytes_max`, for it is
// copied at once.
bool may_complete(const store::Object& part, std::uint64_t bytes_max);

class Fetch final : public net::StreamHandler, public Recycled<Fetch> {
 public:
  // Makes it, gives it to the worker, and begins.
  static void start(Worker& worker, std::shared_ptr<Transfer> transfer,
                    std::shared_ptr<const RequestContext> request, FetchPlan plan);
  ~Fetch();
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;

  // --- the request's body ---
  // Whether upload() may be called now; else TransferReader::on_upload_ready() tells when.
  bool accepts_upload() const;
  // Sends content; `last` ends the body, with trailer lines if it is chunked.
  // REQUIRES: accepts_upload().
  void upload(std::string_view content, bool last, std::string_view trailers);

  // --- from the transfer ---
  void on_readers_changed() { readers_changed_.schedule(); }
  void on_reader_advanced();

  // --- from the worker ---
  void check_timeouts(MonotonicTime now);
  bool waits_for_memory() const { return waits_for_memory_; }
  // Goes on where there is memory now; whether there was. REQUIRES: waits_for_memory().
  bool retry_memory();
  // Ends it at once; what was stored of it is dropped.
  void abandon();
  std::size_t position = 0;  // in the worker's list

 private:
  enum class State : std::uint8_t { kConnecting, kSending, kHead, kBody, kEnded };

  Fetch(Worker& worker, std::shared_ptr<Transfer> transfer,
        std::shared_ptr<const RequestContext> request, FetchPlan plan);

  // StreamHandler
  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream& stream) override;
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;
  std::span<std::byte> read_buffer(net::Stream& stream) override;

  // Connection (fetch_connect.cc).
  void acquire(bool fresh);
  bool take_connection();
  void reconnect();
  void end_wait();
  void choose_destination();
  void choose_server(const OriginServer& server);
  const std::string& pool_key() const {
    return server_ != nullptr ? server_->pool_key : forward_pool_key_;
  }
  void resolve();
  void on_resolved(std::expected<net::Resolved, net::ResolveFailure> result);
  void connect(std::vector<net::Address> addresses);
  void on_connected(std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> result);
  void warn(const std::string& why);
  void use(std::unique_ptr<net::Stream> stream, bool reused);
  void send_request();
  bool flush_request();
  void flush_what_waited();
  bool is_of_present_settings() const;
  bool is_wholly_sent() const;
  void release_connection(bool reusable);

  // After an attempt that failed (fetch_retry.cc).
  enum class AttemptFailure : std::uint8_t {
    kNotConnected,    // no such name, refused, unreachable, TLS
    kConnectTimeout,  // no connection, or no address, in time
    kClosed,          // the connection ended before an answer began
    kSilent,          // no answer in time
    kBusy,            // as many connections as there may be: nothing was tried
  };
  bool may_repeat() const;
  bool try_again(AttemptFailure failure, const std::string& why);
  void note_failure(bool connected, const std::string& why);
  bool choose_other_server(AttemptFailure failure, bool stale);
  void prefer_untried(std::vector<net::Address>& addresses);

  // Response head (fetch_head.cc).
  std::size_t on_head(std::string_view bytes);
  bool on_interim_head();
  void on_final_head();
  void on_not_modified();
  // The stored response as a validation left it.
  struct Confirmed {
    store::ObjectRef object;
    bool stays = false;  // stored, so that it may answer others
  };
  Confirmed freshen_stored();
  bool store_freshened(const ObjectMeta& meta, store::ObjectRef& made);
  void update_by_head();
  void drop_outdated(const http::StoreDecision& decision);
  void apply_defaults(http::StoredMeta& meta) const;
  bool is_overtaken() const;
  void drop_if_overtaken(const ObjectMeta& meta);
  bool serve_stale_on_error();
  void invalidate_others();
  void decide_admission(SharedResponse& response, const http::StoreDecision& decision);
  void remember_sharing(bool shareable, Inflight::Unshared why);
  void count_unstored(SharedResponse& response, const http::StoreDecision& decision);
  void publish_head(std::shared_ptr<SharedResponse> response);
  void publish_now();
  MonotonicTime keep_until(const http::StoredMeta& meta) const;
  http::Exchange exchange_times() const;
  http::StoredMeta stored_meta() const;

  // Body and end (fetch_body.cc).
  std::size_t on_body(std::string_view bytes);
  bool keeps_from_others(const http::Field& field) const;
  std::size_t append(std::string_view content);
  bool find_memory();
  void wait_for_memory();
  void after_append();
  std::uint64_t lag_max() const;
  void pause(MonotonicTime now);
  void end_pause(MonotonicTime now);
  void blame_slowest(MonotonicTime now);
  void check_body(MonotonicTime now);
  void read_on();
  bool begin_storing(std::uint64_t body_bytes);
  bool reserve_up_to(std::uint64_t body_bytes);
  void stop_storing();
  void limit_retention();
  void end_body(bool reusable);
  void commit();
  store::ObjectRef make_object(const ObjectMeta& meta, std::string_view head,
                               const store::BodyRef& body);
  void look_after_readers();

  // Parts of a whole (fetch_partial.cc).
  bool restart_as_asked();
  bool may_store_part() const;
  std::string completion_fields() const;
  bool complete_part();
  bool append_stored_part();
  bool join_parts(ObjectMeta& meta, std::string& head, std::string& tags, store::BodyRef& body);
  store::BodyRef joined_body(const store::Object& old, const http::ByteRange& stored,
                             const http::ByteRange& received);

  // Ends.
  void fail(int status, Outcome outcome, std::string_view detail);
  void fail_later(int status, Outcome outcome, std::string_view detail);
  void end();

  Worker& worker_;
  const std::shared_ptr<Transfer> transfer_;
  const std::shared_ptr<const RequestContext> request_;
  FetchPlan plan_;
  State state_ = State::kConnecting;

  // Connection.
  const OriginServer* server_ = nullptr;  // reverse: of the request's runtime
  std::string host_;
  std::uint16_t port_ = 0;
  const net::TlsContext* tls_ = nullptr;
  std::string tls_name_;
  std::string forward_pool_key_;
  std::unique_ptr<net::Resolver::Query> query_;
  std::unique_ptr<net::Connector> connector_;
  std::unique_ptr<net::Stream> stream_;
  bool fresh_ = false;          // no idle connection will do
  OriginLines::Slot slot_;      // of the connection, from before it is made
  OriginLines::Waiter waiter_;  // for a connection
  bool reused_ = false;
  bool got_bytes_ = false;
  std::uint32_t retries_ = 0;
  std::vector<const OriginServer*> tried_;     // those that failed
  std::vector<net::Address> tried_addresses_;  // of the present server
  bool other_address_ = false;                 // it has one that was not tried
  MonotonicTime since_{};                      // when the present wait began

  // Request.
  std::string request_text_;
  std::size_t request_sent_ = 0;
  std::string upload_pending_;
  std::size_t upload_sent_ = 0;
  bool upload_started_ = false;
  bool upload_done_ = true;
  bool request_broken_ = false;   // the origin takes no more of it; it may have answered before
  bool asked_condition_ = false;  // a 304 is an answer to it
  MonotonicTime request_time_{};
  std::uint64_t invalidations_seen_ = 0;  // as the request was sent

  // Response.
  http::ParseProgress progress_;
  http::ResponseHead& head_;     // the worker's; good during the read that completed it
  std::string_view head_bytes_;  // during the read that completed the head
  std::string raw_head_;         // of what may be stored
  std::string whole_head_;       // of a part that was completed
  std::uint32_t interim_responses_ = 0;
  http::ResponseDirectives directives_;
  http::Framing framing_;
  std::shared_ptr<SharedResponse> response_;
  WallTime response_wall_{};
  MonotonicTime response_time_{};
  bool keep_alive_ = false;
  bool surplus_ = false;    // more came with the head
  std::uint64_t left_ = 0;  // of a body of known length
  http::ChunkedDecoder decoder_;
  store::BodyRef body_;
  std::span<std::byte> direct_;  // where the next read goes, within body_
  bool paused_ = false;          // the readers are behind
  MonotonicTime paused_since_{};
  bool cut_due_ = false;  // a reader was cut and is to be told
  bool waits_for_memory_ = false;
  MonotonicTime memory_since_{};
  bool pending_publish_ = false;  // readers do not know of the head yet
  bool joinable_after_head_ = false;
  bool unread_ = false;  // nobody reads; it is finished for the store alone
  bool retired_ = false;

  // Store.
  bool storable_ = false;  // it may be stored, and a late reader may ask for it
  bool storing_ = false;
  std::uint64_t reserved_bytes_ = 0;

  std::optional<TransferFailure> failure_;  // it will end with this, later in this turn
  net::Deferred readers_changed_;
};

}  // namespace encore::server
