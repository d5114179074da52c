// Fetch: one request to an origin and its response, from the connection to the last byte. It feeds
// a Transfer and, where the response is admitted, the cache. It lives by itself: the client may be
// gone before it ends.
//
// It drives its parts, which know nothing of one another: OriginLink gets the connection,
// RequestWriter sends, plan_head() and plan_storing() decide, ResponseBody takes the body in.
//
//   kConnecting -> kSending -> kHead -> kBody -> kEnded
//        ^------------------------'  (asked again)
//                                       kBody -> kRest -> kEnded  (an early response)
//
// Confined to its worker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/recycled.h"
#include "base/time.h"
#include "proxy/http/parser.h"
#include "proxy/net/quiescence_detector.h"
#include "proxy/net/stream.h"
#include "proxy/net/timer.h"
#include "proxy/origin/fetch_state.h"
#include "proxy/origin/name_check.h"
#include "proxy/origin/origin_http2_stream.h"
#include "proxy/origin/origin_link.h"
#include "proxy/origin/received_response.h"
#include "proxy/origin/redirection.h"
#include "proxy/origin/request_writer.h"
#include "proxy/origin/response_body.h"
#include "proxy/origin/response_plan.h"
#include "proxy/origin/services.h"
#include "proxy/request/request_context.h"
#include "proxy/transfer/response.h"
#include "proxy/transfer/transfer.h"

namespace encore::server {

// The task of a fetch, and its audience.
struct FetchPlan {
  bool whole = false;           // without the client's Range and conditions
  bool in_table = false;        // others may join
  bool background = false;      // nobody waits
  bool has_upload = false;      // the first reader brings a body
  std::uint32_t redirects = 0;  // that were followed
  // As the first of them was sent: what has changed since may not show in where they lead.
  std::optional<std::uint64_t> invalidations_seen = {};
  store::ObjectRef stored;  // to be validated, but not where a redirection leads; empty: none
  MonotonicTime stored_fresh_until{};
  store::ObjectRef completes;  // a stored part: the rest of it is asked for; empty: none
};

class Fetch final : public Producer,
                    public net::StreamHandler,
                    public OriginHttp2Handler,
                    public OriginLinkHandler,
                    public ResponseBodyOwner,
                    public Recycled<Fetch> {
 public:
  // Makes it, gives it to the keeper, and begins. `services` is borrowed until it is retired.
  static void start(OriginServices& services, std::shared_ptr<Transfer> transfer,
                    std::shared_ptr<const RequestContext> request, FetchPlan plan);
  ~Fetch();
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;

  // --- the transfer ---
  bool accepts_upload() const override;
  bool takes_rest() const override;
  void upload(std::string_view content, bool last, std::string_view trailers) override;
  void on_readers_changed() override { readers_changed_.schedule(); }
  void on_reader_advanced() override;

  // --- the connection's stream and link, and the body ---
  std::size_t on_data(net::Stream& stream, std::span<const std::byte> bytes) override;
  void on_writable(net::Stream& stream) override;
  void on_eof(net::Stream& stream) override;
  void on_error(net::Stream& stream, net::CloseReason reason, int os_error) override;
  std::span<std::byte> read_buffer(net::Stream& stream) override;
  std::size_t on_stream_bytes(std::string_view bytes) override;
  void on_stream_end(std::string_view trailers) override;
  void on_stream_writable() override;
  void on_stream_failed(const StreamFailure& failure) override;
  void on_link_open() override;
  void on_link_failed(const TransferFailure& failure) override { fail(failure); }
  void on_storing_stopped() override;
  void note_not_stored();

  // --- the worker ---
  void check_timeouts(MonotonicTime now);
  bool waits_for_memory() const { return state_ == State::kBody && body_.waits_for_memory(); }
  // Goes on where there is memory now; whether there was. REQUIRES: waits_for_memory().
  bool retry_memory() { return body_.retry_memory(); }
  // REQUIRES, as the next: waits_for_memory().
  MonotonicTime waits_for_memory_since() const { return body_.waits_since(); }
  // Ends without its body, so that others have the memory of what there is.
  void give_way();
  // Checks it in a drain (net::QuiescenceDetector): if nothing moves between us and the origin, it
  // informs its readers, and ends if it has none.
  void end_if_quiet();
  // Ends it immediately; what was stored of it is dropped.
  void abandon();
  void note_waited_in_vain();
  std::size_t position = 0;  // in the worker's list

 private:
  using State = FetchState::At;
  // Use of the client's content: it is gathered before there is a connection
  // (upstream.buffer_requests), or goes on as it comes.
  enum class Content : std::uint8_t { kGathered, kGoesOn };
  // State of the head for readers.
  enum class Publication : std::uint8_t { kNotYet, kDue, kDone };

  Fetch(OriginServices& services, std::shared_ptr<Transfer> transfer,
        std::shared_ptr<const RequestContext> request, FetchPlan plan);

  // Asking (fetch.cc).
  void go_on(OriginLink::Progress progress);
  void ask_again();
  bool try_again(OriginLink::AttemptFailure failure, std::string_view why);
  void send_request();
  bool flush();
  void flush_what_waited();
  void release_connection(bool reusable);

  // The head (fetch_head.cc).
  std::size_t on_head(std::string_view bytes);
  void on_interim_head();
  void on_final_head(bool surplus);
  void confirm_stored();
  void serve_stale(int status);
  bool ask_as_told();
  void pass_on(const HeadPlan& plan);
  void follow_redirection(Redirection redirection, const HeadPlan& plan);
  void open_body(std::shared_ptr<SharedResponse> response, ResponseBody::Use use);

  // The body, and the ends (fetch_body.cc).
  std::size_t on_body(std::string_view bytes);
  void publish_head();
  void publish_end();
  void end_body(bool reusable);
  void look_after_readers();
  void fail(TransferFailure failure);
  void fail_later(const TransferFailure& failure);
  void end();

  OriginServices& services_;
  const std::shared_ptr<Transfer> transfer_;
  const std::shared_ptr<const RequestContext> request_;
  FetchPlan plan_;
  FetchState state_;
  MonotonicTime begun_;  // the search for a connection
  Content content_ = Content::kGoesOn;
  Publication publication_ = Publication::kNotYet;
  OriginLink link_;
  RequestWriter writer_;
  MonotonicTime since_{};         // when the present wait for the origin began
  bool asked_condition_ = false;  // a 304 is an answer to it
  bool switched_ = false;         // further bytes are for the connection's present owner
  bool answered_ = false;         // some of an answer has come on this connection

  // Check of a redirection's host name: the response waits for it, and goes to the client if the
  // redirection is not followed. Null: there is none in progress.
  std::unique_ptr<NameCheck> name_check_;
  RedirectRefusal unfollowed_ = RedirectRefusal::kNone;

  OriginVisit visit_;
  http::ParseProgress progress_;
  std::uint32_t interim_responses_ = 0;
  const std::shared_ptr<ReceivedResponse> received_;
  std::shared_ptr<SharedResponse> response_;
  std::optional<std::string> verified_digest_;  // the body is held to it
  bool keep_alive_ = false;                     // the connection, if the body ends as it should
  ResponseBody body_;
  net::QuiescenceDetector quiet_;  // in a drain
  bool unread_ = false;            // nobody reads; it is finished for the store alone

  std::optional<TransferFailure> failure_;  // it will end with this, later in this turn
  net::Deferred readers_changed_;
  net::Deferred gathered_;  // content may come, or enough of it has
};

}  // namespace encore::server
