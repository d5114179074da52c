// Transfer: a response on its way, shared by all who want it. A Producer on one thread, its home's,
// fills it; readers on any thread look on. The body lies in a store::Body, which one thread appends
// to and any thread reads without a lock; this class adds the head, the state and the waking.
//
// A reader is woken once for all that happened since it last looked: readers of the same home by a
// direct call, others through their home (TransferHome::wake).
//
// One that nobody else can find, and that is read at home alone, takes no lock. Why readers pull:
// docs/decisions/0050.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "filter/hash.h"
#include "proxy/http/variant_keys.h"
#include "proxy/net/address.h"
#include "proxy/observe/origin_visit.h"
#include "proxy/observe/outcome.h"
#include "proxy/store/body.h"
#include "proxy/transfer/producer.h"
#include "proxy/transfer/response.h"
#include "proxy/transfer/switched_connection.h"
#include "proxy/transfer/transfer_home.h"
#include "proxy/transfer/transfer_reader.h"

namespace encore::server {

enum class TransferPhase : std::uint8_t {
  kWaiting,    // no final response head yet
  kSharing,    // the head is there; the body grows, or is complete or aborted (store::Body says)
  kValidated,  // nothing to read here: validated() is to be served
  kSwitched,   // the connection has gone over to another protocol: take_switched()
  kFailed,     // no response came; failure() says why
};

// Why no response came, and what to answer.
struct TransferFailure {
  int status = 502;
  Outcome outcome = Outcome::kOriginUnreachable;
  std::string detail = {};
  bool of_the_client = false;  // the client is the reason: others may fare better
  std::string why = {};        // for who reads the answer
  OriginVisit visit = {};
};

// The result of a validation: a stored response to serve.
struct Validated {
  store::ObjectRef object = {};
  // Its meta and head as the validation left them, where the store has no room for those; or null.
  std::shared_ptr<const UnstoredHead> unstored = {};
  bool stale = false;  // served stale, because the origin failed with this status (0: it gave none)
  int status = 0;
  bool shareable = false;          // may answer others for whom it is fresh
  std::string private_lines = {};  // fields of the validation's answer for the one who asked
  OriginVisit visit = {};
  std::string detail = {};  // why the origin has given no answer
};

// Which variant a transfer is expected to bring, as far as that is known before its head.
struct ExpectedVariant {
  std::string names;  // selecting names, not "*"
  std::string key;
};

// Whether a reader could join, and when.
enum class JoinOutcome : std::uint8_t {
  kNo,               // it may not be joined, or brings another variant
  kUnknownKey,       // the reader's variant key for expected_names() must be made first
  kBeforeHead,       // counted for admission by the producer
  kBehindHead,       // or as good as there: the reader counts for itself
  kUntilStored,      // there is a head, and nothing for the reader to read: it may wait for the end
  kStoredMeanwhile,  // it has ended, and its response may be stored (Inflight)
};

// Readers that may join behind the head.
enum class Joinable : std::uint8_t {
  kNo,
  kToRead,       // receives the response
  kUntilStored,  // waits until it is stored, to validate it then
};

// Transfers that a reader would join.
enum class JoinScope : std::uint8_t {
  kAny,
  kBeingStored,  // only what it may wait for until it is stored
};

class Transfer : public std::enable_shared_from_this<Transfer> {
 public:
  // Properties of the request that others know before its response comes.
  struct Requester {
    std::uint64_t settings = 0;     // under which it came (Runtime::number)
    std::uint64_t credentials = 0;  // RequestContext::credentials()
    net::Address client = {};
  };
  // `home` is that of the producer's thread, on which the transfer is made; borrowed. `key` is null
  // for transfers that nobody can join.
  Transfer(TransferHome& home, filter::Hash128 hash, std::shared_ptr<const std::string> key,
           const Requester& requester);
  Transfer(TransferHome& home, filter::Hash128 hash, std::shared_ptr<const std::string> key)
      : Transfer(home, hash, std::move(key), Requester()) {}
  // REQUIRES: nobody reads it, and it has no producer.
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  bool can_be_found() const { return key_ != nullptr; }
  bool has_key(std::string_view key) const { return key_ != nullptr && *key_ == key; }
  const filter::Hash128& hash() const { return hash_; }
  const Requester& requester() const { return requester_; }

  // Any thread. Data read after the phase was seen are those that were there when it was set.
  TransferPhase phase() const { return phase_.load(std::memory_order_acquire); }
  // REQUIRES: phase kSharing.
  const SharedResponse& response() const { return *response_; }
  const std::shared_ptr<const SharedResponse>& response_pointer() const { return response_; }
  const store::BodyRef& body() const { return body_; }
  // REQUIRES: phase kFailed.
  const TransferFailure& failure() const { return failure_; }
  // REQUIRES: phase kValidated.
  const Validated& validated() const { return validated_; }
  // REQUIRES: phase kSwitched, on the home's thread; once.
  SwitchedConnection take_switched() { return std::move(switched_); }
  // The producer, for readers of its own home; null once it has ended, and elsewhere.
  Producer* producer_here() const;

  // --- readers, on their own thread ---

  // The one who starts the transfer. REQUIRES: its home is the transfer's; it is the first.
  void add_first_reader(TransferReader& reader);
  // Joins a transfer if it may still be joined: before the head, or after it while the body is
  // kept from byte 0; and brings, as far as is known, the variant that the reader's request
  // selects. The caller then counts for admission: before the head the transfer is stored (if it
  // may be); after it see want_store(). With kUnknownKey `names` says which key is missing.
  JoinOutcome join(TransferReader& reader, const http::VariantKeys& own, JoinScope scope,
                   std::string& names);
  // The reader has its place in the body (or needs none): what it has passed may be let go.
  void mark_opened(TransferReader& reader);
  // A reader has waited for the head for too long: nobody else is to begin to. Nothing is done
  // where it has come meanwhile.
  void give_up_head();
  // The reader reads no body bytes, and does not delay others: it waits for its end.
  void mark_waiting(TransferReader& reader);
  // True if the end is worth waiting for: the response is being stored, to be validated by each.
  bool is_awaitable() const { return awaitable_.load(std::memory_order_acquire); }
  // Leaves, where it has joined; the producer may end if nobody else wants it.
  void leave(TransferReader& reader);
  // Tells how far the reader is, so that a paused producer may go on.
  void advance(TransferReader& reader, std::uint64_t position);
  // After a join behind the head: the response has been admitted, store it.
  void want_store();

  // --- the producer, on its thread ---

  // Null: it has ended. Borrowed until then.
  void set_producer(Producer* producer);
  // Before others can see it: who wants another variant is not to wait for this one.
  void expect(ExpectedVariant variant) { expected_ = std::move(variant); }
  bool is_expected() const { return expected_.has_value(); }
  // Number of requests that joined so far, to be counted for admission: who joins from now on
  // counts for itself, as behind the head.
  std::uint32_t count_joined();
  void publish_response(std::shared_ptr<const SharedResponse> response, store::BodyRef body,
                        Joinable joinable);
  void publish_validated(Validated validated);
  void publish_failure(TransferFailure failure);
  void publish_switched(SwitchedConnection switched);
  void publish_interim(std::string_view head);
  // More of the request's body can be taken.
  void publish_upload_ready();
  // The body grew or ended. Wakes readers.
  void publish_body() { wake_readers(); }
  // No reader may join any more; what was awaited is stored, or will not be.
  void stop_joining();
  // True if somebody asked for it to be stored after the head.
  bool is_store_wanted() const { return store_wanted_.load(std::memory_order_acquire); }
  bool has_readers() const;
  // Ends joining for good where nobody reads; false, and nothing done, where somebody does.
  bool close_if_unread();
  // True if every reader has its place in the body.
  bool all_opened() const;
  // The least that any reader has read; `written` where there is none.
  std::uint64_t slowest_position(std::uint64_t written) const;
  // True if the only reader is one of a client beyond its share of memory.
  bool is_over_share() const;
  // Until `now` the producer was paused for `elapsed`, with so much written. If some readers have
  // read it all, the slowest one is to blame. Blame grows with the time of such pauses and fades
  // with that between them. So a reader less than half as fast as the others is cut in the end, and
  // one that takes nothing after two seconds; readers of similar speed take turns, and none is cut.
  // The readers of the same client that are at least half as far behind are blamed with it: they
  // would delay the others one after the other. Returns whether one was cut; the next wake-up
  // reports it.
  struct HoldBack {
    std::uint64_t written = 0;
    Nanoseconds elapsed{};
    MonotonicTime now{};
  };
  bool blame_slowest(const HoldBack& hold_back);
  // Returns whether some reader has read all of `written`, and waits. Only then is each that has
  // not asked whether its client takes anything, and each that has, whether its client has taken it
  // all: they answer by themselves, from their loops. With kVerdict others waited at the last
  // question, too: who takes nothing is to leave.
  enum class ReaderProbe : std::uint8_t { kNobody, kToKnow, kVerdict };
  enum class Others : std::uint8_t {
    kBehind,  // nobody has read all
    kBusy,    // the clients of readers that have read all are still taking it
    kWait,
  };
  Others probe_blocking_readers(std::uint64_t written, ReaderProbe asking);
  // True if more than one reads it.
  bool is_read_by_several() const;
  // Mid-body: it ends for want of memory, which is no fault of who produces it.
  void set_out_of_memory() { out_of_memory_.store(true, std::memory_order_release); }
  bool is_out_of_memory() const { return out_of_memory_.load(std::memory_order_acquire); }
  // kQuiet: in a drain, nothing has moved lately between us and the origin. kHeldBack: the fetch
  // waits because its client has its share of the server; other clients, who have shares of their
  // own, do not join it meanwhile. Any thread asks.
  enum class Motion : std::uint8_t { kMoving, kQuiet, kHeldBack };
  void set_motion(Motion motion) { motion_.store(motion, std::memory_order_relaxed); }
  bool is_held_back() const { return motion_.load(std::memory_order_relaxed) == Motion::kHeldBack; }
  bool is_quiet() const { return motion_.load(std::memory_order_relaxed) == Motion::kQuiet; }
  // The producer goes no further before all read: who waits for more of the body before it begins
  // is not to wait any longer. For good; the next wake-up tells it.
  void urge_readers() { haste_.store(ReadUrgency::kUrged, std::memory_order_release); }
  bool are_readers_urged() const {
    return haste_.load(std::memory_order_acquire) == ReadUrgency::kUrged;
  }
  // The body is written to disk alone, in parts that are found by this number (LargeBody), as far
  // as they are there; 0: it is not. Any thread asks.
  void set_parts(std::uint64_t number) { parts_.store(number, std::memory_order_release); }
  std::uint64_t parts() const { return parts_.load(std::memory_order_acquire); }
  // No further part comes: all are there, or the rest is not written any more.
  void end_parts() { parts_end_.store(PartsEnd::kReached, std::memory_order_release); }
  bool may_parts_come() const {
    return parts_end_.load(std::memory_order_acquire) == PartsEnd::kAhead;
  }
  // After set_producer_paused(true) the producer is notified of each advance() of a reader. A call
  // of slowest_position() afterwards misses none that came before.
  void set_producer_paused(bool paused) { producer_paused_.store(paused); }

  // --- the table of those in progress (Inflight), on the producer's thread -----------------------

  // Others may find it from now on.
  void set_listed();
  bool is_listed() const { return access_.load(std::memory_order_relaxed) == Access::kListed; }
  // Nobody finds it any more who has not. REQUIRES: is_listed().
  void set_unlisted();

 private:
  // The threads that can reach it.
  enum class Access : std::uint8_t {
    kHome,    // its home's thread alone
    kListed,  // requests that find it in the table, and readers of other homes
    kShared,  // those readers
  };

  enum class PartsEnd : std::uint8_t { kAhead, kReached };
  // Whether readers may take their time before they begin.
  enum class ReadUrgency : std::uint8_t { kNone, kUrged };

  // Holds the mutex, unless the home's thread is alone with the transfer.
  class ENCORE_SCOPED_CAPABILITY Lock {
   public:
    explicit Lock(const Transfer& transfer)
        ENCORE_ACQUIRE(transfer.mutex_) ENCORE_NO_THREAD_SAFETY_ANALYSIS;
    ~Lock() ENCORE_RELEASE() ENCORE_NO_THREAD_SAFETY_ANALYSIS;
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Mutex* held_;  // null: none is needed
  };

  void publish_phase(TransferPhase phase);
  // Readers of this home, to be called once the lock is gone.
  struct Woken {
    TransferReader* first = nullptr;
    std::vector<TransferHome::Ticket> others;
  };
  // Wakes the readers of other homes.
  Woken wake_elsewhere() ENCORE_REQUIRES(mutex_);
  void wake_here(const Woken& woken);
  void wake_readers();
  void tell(void (Producer::*what)());
  TransferReader* first_reader() const;
  void add_reader(TransferReader& reader) ENCORE_REQUIRES(mutex_);
  void remove_reader(TransferReader& reader) ENCORE_REQUIRES(mutex_);

  TransferHome& home_;
  const filter::Hash128 hash_;
  const std::shared_ptr<const std::string> key_;
  const Requester requester_;
  Producer* producer_ = nullptr;  // home's thread only
  // Written by the home's thread alone, under the mutex unless it is kHome; nobody else has the
  // transfer then.
  std::atomic<Access> access_ = Access::kHome;
  std::atomic<TransferPhase> phase_ = TransferPhase::kWaiting;
  std::shared_ptr<const SharedResponse> response_;  // set before kSharing is published
  store::BodyRef body_;
  TransferFailure failure_;
  Validated validated_;
  SwitchedConnection switched_;
  std::optional<ExpectedVariant> expected_;  // set before others see the transfer
  std::atomic<std::uint32_t> joined_ = 0;
  std::atomic<bool> store_wanted_ = false;
  std::atomic<bool> awaitable_ = false;
  std::atomic<bool> out_of_memory_ = false;
  std::atomic<Motion> motion_ = Motion::kMoving;
  std::atomic<ReadUrgency> haste_ = ReadUrgency::kNone;
  std::atomic<PartsEnd> parts_end_ = PartsEnd::kAhead;
  std::atomic<std::uint64_t> parts_ = 0;
  // Together with each reader's position: one side writes its own and reads the other's, so both
  // are sequentially consistent.
  std::atomic<bool> producer_paused_ = false;

  mutable Mutex mutex_;
  Joinable joinable_ ENCORE_GUARDED_BY(mutex_) = Joinable::kToRead;
  bool is_counted_ ENCORE_GUARDED_BY(mutex_) = false;
  TransferReader* first_ ENCORE_GUARDED_BY(mutex_) = nullptr;    // the one who asked
  TransferReader* readers_ ENCORE_GUARDED_BY(mutex_) = nullptr;  // in the order of joining
  TransferReader* last_ ENCORE_GUARDED_BY(mutex_) = nullptr;
  std::size_t elsewhere_ ENCORE_GUARDED_BY(mutex_) = 0;  // readers of other homes
};

}  // namespace encore::server
