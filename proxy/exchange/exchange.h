// Exchange: one request that is not a plain hit, from its lookup to the last byte of its response.
// Its steps, and which may follow which, are the table of exchange/steps.h. It knows its client as
// a ClientStream, and nothing of the connection.
//
// Nothing that it starts calls it back within the call that starts it, and it may be destroyed in
// any of the calls that it makes from a callback; ClientStream says who destroys it, and when.
//
// Confined to its connection's worker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/time.h"
#include "cache/kernel.h"
#include "proxy/exchange/authorization_cache.h"
#include "proxy/exchange/authorization_recheck.h"
#include "proxy/exchange/cache_lookup.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/exchange/coders.h"
#include "proxy/exchange/content_rest.h"
#include "proxy/exchange/decide.h"
#include "proxy/exchange/disk_loads.h"
#include "proxy/exchange/load_wait.h"
#include "proxy/exchange/purge_request.h"
#include "proxy/exchange/range_wait.h"
#include "proxy/exchange/request_log.h"
#include "proxy/exchange/response_coding.h"
#include "proxy/exchange/response_content.h"
#include "proxy/exchange/response_plan.h"
#include "proxy/exchange/sharing.h"
#include "proxy/exchange/step_walk.h"
#include "proxy/exchange/synthetic_response.h"
#include "proxy/exchange/transfer_subscription.h"
#include "proxy/exchange/upload.h"
#include "proxy/http/cache_status.h"
#include "proxy/http/continuation.h"
#include "proxy/http/variant_keys.h"
#include "proxy/net/timer.h"
#include "proxy/observe/stats.h"
#include "proxy/publish/resources.h"
#include "proxy/request/request_context.h"
#include "proxy/request/request_view.h"
#include "proxy/transfer/inflight.h"
#include "proxy/transfer/stall_detector.h"
#include "proxy/transfer/transfer.h"

namespace encore::server {

// The order to an origin, in addition to the request itself.
struct OriginFetchOptions {
  OriginRequestForm what = OriginRequestForm::kWhole;
  enum class Table : std::uint8_t { kNotIn, kIn } table = Table::kNotIn;  // kIn: others may join it
  enum class For : std::uint8_t { kAsker, kNobody } whom = For::kAsker;   // kNobody: background
  enum class Content : std::uint8_t { kNone, kComes } content = Content::kNone;  // the request's
  CacheView validates = {};  // empty: nothing is validated
  // A stored response that may be a part of the requested object; empty: none. If the rest of it
  // will do, that alone is requested.
  store::ObjectRef part = {};
};

// Sends requests to origins. The answer comes through the transfer, from the loop.
class OriginFetcher {
 public:
  virtual void start_fetch(std::shared_ptr<Transfer> transfer,
                           std::shared_ptr<const RequestContext> request,
                           OriginFetchOptions ask) = 0;

 protected:
  ~OriginFetcher() = default;
};

// Services of their worker that exchanges use. All are borrowed and outlive them.
struct ExchangeServices {
  net::Loop& loop;
  const std::unique_ptr<cache::Kernel>& kernel;
  Inflight& inflight;
  WorkerStats& stats;
  CacheLookup& cache;
  RequestLog& log;
  TransferHome& home;
  OriginFetcher& origins;
  DiskLoads& loads;
  AuthorizationCache& rechecks;
  publish::Resources* published = nullptr;  // null: nothing is published
  Purger* purger = nullptr;                 // null: nothing is purged
  Coders* coders = nullptr;                 // null: nothing is compressed
};

class Exchange final : public TransferReader, private LoadReader {
 public:
  // `client` outlives it. `found` is what the cache had.
  Exchange(const ExchangeServices& services, ClientStream& client,
           std::shared_ptr<const RequestContext> request, CacheView found);
  ~Exchange() override;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // --- from the stream; none of it after end() ---
  // REQUIRES: called once.
  void start();

  // Permission to bring content of the request.
  enum class ContentDemand : std::uint8_t {
    kNow,
    kLater,  // want_content() tells when
    kNever,  // nobody wants what is left of it
  };
  ContentDemand content_demand() const;
  // Content came, and is used. REQUIRES: content_demand() is kNow.
  void on_content(std::string_view bytes);
  // The content has ended, with these lines of a trailer section, as they came. This call is
  // optional for content whose length was announced. REQUIRES as on_content.
  void on_content_end(std::string_view trailers);
  // The input is no content: the request has no end.
  void on_content_broken(std::string_view detail);

  void on_writable();
  // The client has gone, or has to: its connection ends before the response did.
  void on_gone(const ClientGone& why = {});
  // The client takes its response too slowly: it ends here.
  void cut();
  void check_timeouts(MonotonicTime now);
  // In a drain: whether it waits for an answer of which something has moved lately.
  bool is_origin_active() const;

 private:
  // TransferReader
  void on_transfer() override;
  void on_interim(std::string_view head) override;
  void on_upload_ready() override;
  // LoadReader
  void on_loaded(store::ObjectRef object) override;

  // Deciding (exchange.cc).
  void answer(const LocalResponse& answer);
  void look_at_found();
  void decide_stored();
  // True if the origin is asked first if this client may have it.
  bool ask_permission();
  void ask_for_absent();

  // Asking (exchange_ask.cc). The request to the origin.
  struct Ask {
    enum class Sharing : std::uint8_t { kNo, kWhereAllowed };
    OriginRequestForm what = OriginRequestForm::kAsItIs;
    store::ObjectRef validates = {};  // empty: nothing is validated
    Sharing sharing = Sharing::kNo;
  };
  void ask(const Ask& ask);
  void validate_in_background();
  void ask_again(ShareDecision take = ShareDecision::kAskAgain);
  void ask_alone(http::Forwarded why);
  void purge();

  // Taking what came (exchange_shared.cc).
  void respond_validated();
  void respond_shared();
  void wait_for_range(const http::RangeNeed& needed);
  void on_failure();

  // Responding (exchange_respond.cc).
  // `part`: what of a stored part is the answer; null: the object is a whole response.
  void respond_stored(const store::ObjectRef& object, Outcome outcome,
                      const FoundPart* part = nullptr);
  void respond(const ResponseSource& source, ResponsePlan&& plan);
  void respond_own(SyntheticResponse answer);
  void fail(const Failure& failure);
  void refuse_content(int status, std::string_view detail);
  void pump();
  // Makes the record, and tells the client. Nothing: it has gone.
  void finish(std::optional<ClientStream::End> how);

  const ExchangeServices& services_;
  ClientStream& client_;
  const std::shared_ptr<const RequestContext> request_;
  CacheView found_;
  StepWalk steps_;
  LoadWait load_;
  bool from_disk_ = false;  // found_.object was read for this request
  AuthorizationRecheck permission_;
  TransferSubscription subscription_;
  bool may_look_again_ = true;  // into the cache, for what has come since
  // Scheduled for a long body, or if a transfer was joined that has something already.
  net::Deferred next_turn_;
  StallDetector stall_detector_;  // the client's, while others wait for it
  // How it goes on where the readers of a shared transfer do not wait for it
  // (exchange_continue.cc).
  class ReaderDetachment {
   public:
    explicit ReaderDetachment(Exchange& exchange) : exchange_(exchange) {}
    // It has left the others.
    bool is_alone() const { return way_ != Way::kNone; }
    // It loses nothing by that.
    bool can_go_on() const;
    // Leaves; what cannot go on ends.
    void leave();
    // The body from disk ended early. False where the rest cannot be had.
    bool lose_disk() { return way_ == Way::kFromDisk && start_fetch(); }
    // Nothing more is there to be sent: looks for the origin's answer, where one is waited for.
    void look() {
      if (way_ == Way::kAsksOrigin) take_answer();
    }

   private:
    enum class Way : std::uint8_t {
      kNone,
      kFromDisk,    // as it is written there; the transfer is waited for
      kAsksOrigin,  // by a request of its own, which has no answer yet
      kFromOrigin,
    };
    std::optional<http::Continuation> missing_rest() const;
    // The body is written in parts, and its length is known.
    bool is_in_parts() const;
    bool read_disk();
    bool start_fetch();
    void take_answer();

    Exchange& exchange_;
    Way way_ = Way::kNone;
    std::unique_ptr<http::Continuation> asked_;  // sent to the origin; null: nothing was
  } detachment_{*this};

  RangeWait range_wait_;
  Upload upload_;
  ContentRest rest_;
  ResponseCoding coding_;
  ResponseContent content_;
  std::string trailers_;                            // the stored object's
  std::shared_ptr<const SharedResponse> response_;  // the one that is being sent, if any
  std::shared_ptr<const UnstoredHead>
      unstored_;               // made by a validation, if not in the object itself
  std::string private_lines_;  // in a validation's answer to this request
  http::VariantKeys variants_;
  http::CacheStatus cache_status_;
  RequestRecord record_;
  std::uint64_t lost_bytes_ = 0;  // sent bytes that the end of the connection took
  OriginVisit visit_;             // viewed by record_.visit if it is of no response of a transfer
  std::string response_fields_;   // fields of it for the log
  std::string failure_detail_;    // viewed by record_.detail if it is no constant
};

}  // namespace encore::server
