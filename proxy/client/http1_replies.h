// Http1Replies: the output of an HTTP/1 connection outside its exchanges and tunnels: plain hits,
// which are gathered for one write, and refusals. Output that the client does not take immediately
// is pending, and all that comes behind waits for it. Counts what the client makes the proxy hold
// by not taking it, of these and of other responses of the connection. Confined to its worker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/client/gathered_hits.h"
#include "proxy/client/http1_services.h"
#include "proxy/client/http1_writer.h"
#include "proxy/exchange/body_reader.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/intake/intake.h"
#include "proxy/net/stream.h"
#include "proxy/request/request_context.h"
#include "proxy/store/object.h"

namespace encore::server {

class Http1Replies {
 public:
  // The connection, which is called before a call of this returns.
  class Owner {
   public:
    // Replies that are or were pending were pumped: kDead where it is over with the client.
    virtual void on_pumped(Http1Writer::Status status) = 0;

   protected:
    ~Owner() = default;
  };
  // All are borrowed and outlive it.
  Http1Replies(const ClientServices& services, const ListenerContext& listener,
               const ClientIdentity& identity, net::Stream& stream, Owner& owner)
      : services_(services),
        listener_(listener),
        identity_(identity),
        stream_(stream),
        owner_(owner) {}
  Http1Replies(const Http1Replies&) = delete;
  Http1Replies& operator=(const Http1Replies&) = delete;

  // A request that has a plain hit. All is borrowed.
  struct HitRequest {
    const RequestView& view;
    std::string_view text;  // its head
    HitForm form;
    bool is_kept;       // another one may follow
    bool is_last_read;  // and has not been read yet, or none will be
  };
  void add_hit(const HitRequest& request, CacheView& found);
  // Sends a whole reply of our own.
  void send(std::string reply);
  // A request that was read behind others, whose responses found nobody, has none. `status`: that
  // it would have had; 0: not known.
  void record_unsent(const RequestView& view, int status = 0);

  // Writes what was gathered. False: the client is not there any more, and the owner knows.
  bool flush() { return services_.http1.batch.empty() || write_batch(); }

  bool is_pending() const { return pending_ != nullptr; }
  // Null: nothing is pending. It is asked for its pace, and how long it has stood still.
  Http1Writer* writer() const { return pending_ == nullptr ? nullptr : &pending_->writer; }
  // The request of the large hit among what is pending; null: there is none.
  const RequestContext* request() const {
    return pending_ == nullptr || !pending_->kept ? nullptr : pending_->kept->request.get();
  }
  // Goes on with what is pending. REQUIRES: is_pending().
  void pump();
  // Ends what is pending like this; with Outcome::kHit it was taken whole.
  void end(const ClientGone& how);

  // Counts what `writer`, the present one, holds in memory because the client does not take it.
  void account(const Http1Writer& writer);
  // Requests from here on may be another client's: several send by way of one proxy.
  void forget_client() {
    if (holding_.bytes() == 0) holding_.reset();
  }
  bool is_over_share() const;
  // Measures how fast the client takes what there is. True: more slowly than it must.
  bool is_too_slow(Http1Writer& writer, MonotonicTime now);
  std::optional<SlowReader> slow_reader(const Http1Writer& writer) const;

 private:
  // A gathered hit of which the socket has not taken all.
  struct UnsentHit {
    GatheredHit hit;
    std::uint64_t taken_before = 0;  // bytes of the hit, when it became pending
    std::uint64_t begin = 0;         // among the others, within what the writer sends
    std::uint64_t end() const { return begin + hit.count.sent_bytes - taken_before; }
  };
  struct Pending {
    Http1Writer writer;
    BodyReader content;
    std::vector<UnsentHit> owed;   // in their order, in front of all else
    std::uint64_t owed_bytes = 0;  // their sum
    // The record of the large hit among them; null: there is none. It is logged when the hit ends.
    // While `kept` is null it belongs to the caller, who logs it.
    RequestRecord* record = nullptr;
    std::unique_ptr<KeptRecord> kept;
  };
  // The end of a hit's head, in the batch's room.
  void add_recorded(const HitRequest& request, CacheView& found, const HitCount& count,
                    std::string_view tail);
  std::unique_ptr<KeptRecord> keep(const HitRequest& request, const RequestRecord& record,
                                   const store::ObjectRef& logged) const;
  bool send_large(CacheView& found, RequestRecord& record, std::string_view tail);
  // Place of a hit that goes alone, when it was written.
  enum class Written : std::uint8_t { kTaken, kPending, kGone };
  Written write_alone();
  bool write_batch();
  void settle(const net::WriteResult& written);
  void owe(GatheredHit hit, std::uint64_t bytes_left);
  void settle_owed(Pending& reply);
  void record_taken(const GatheredHit& hit);
  void record_cut(const GatheredHit& hit, const ClientGone& how, std::uint64_t bytes);
  Pending& pending();

  const ClientServices& services_;
  const ListenerContext& listener_;
  const ClientIdentity& identity_;
  net::Stream& stream_;
  Owner& owner_;
  TransferMemory::Holding holding_;
  std::unique_ptr<Pending> pending_;  // to be sent before anything else
};

}  // namespace encore::server
