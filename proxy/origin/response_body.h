// ResponseBody: the body of a response on its way: out of its connection by its framing, into a
// store::Body that the readers of the transfer look on, and into the cache where it may. It holds
// the connection back where readers are slow or memory is short.
//
// Confined to its worker.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "proxy/net/body_digest.h"
#include "proxy/net/timer.h"
#include "proxy/origin/body_framing.h"
#include "proxy/origin/origin_stream.h"
#include "proxy/origin/received_response.h"
#include "proxy/origin/services.h"
#include "proxy/origin/store_writer.h"
#include "proxy/store/body.h"
#include "proxy/transfer/transfer.h"

namespace encore::server {

// Owner of a body: receives what happens to it within a call, and does nothing of it then.
class ResponseBodyOwner {
 public:
  // It was being stored, and is no more.
  virtual void on_storing_stopped() = 0;

 protected:
  ~ResponseBodyOwner() = default;
};

class ResponseBody {
 public:
  // All is borrowed.
  ResponseBody(OriginServices& services, const RequestContext& request, Transfer& transfer,
               ResponseBodyOwner& owner);
  ResponseBody(const ResponseBody&) = delete;
  ResponseBody& operator=(const ResponseBody&) = delete;

  // Use of a body.
  enum class Use : std::uint8_t {
    kPass,      // it is passed on
    kMayStore,  // and stored, should somebody ask for that
    kStore,     // and stored
  };
  // Permission for others to join behind the head, as long as the body is kept from its beginning.
  enum class Joining : std::uint8_t { kNo, kWhileKept };
  // Begins the body of `received`, whose `response` it is shared as; both, and the stream, are
  // borrowed until the end. False where there is no memory. REQUIRES: called once.
  [[nodiscard]] bool open(OriginStream stream, const ReceivedResponse& received,
                          const SharedResponse& response, Use use, Joining joining);
  // It must have this digest, in hexadecimal. REQUIRES: open, nothing has come.
  void expect(std::string digest) { digest_.emplace(std::move(digest)); }
  // True if what has come is right, if that is all. REQUIRES: open.
  bool is_right() const { return !digest_ || digest_->is_right_with({}); }
  // The first bytes are those of a stored part. False where there is no memory.
  [[nodiscard]] bool append_part(const store::Object& part);
  bool is_open() const { return static_cast<bool>(body_); }

  enum class Status : std::uint8_t {
    kGoesOn,
    kDone,  // the rest of the bytes is none of it
    kBadChunk,
    kWrongDigest,  // it is not what its digest says; its last bytes were kept from everybody
  };
  struct ConsumedBytes {
    Status status = Status::kGoesOn;
    std::size_t bytes = 0;  // fewer than all: there is no memory, the rest comes again
  };
  // REQUIRES: open.
  ConsumedBytes on_bytes(std::string_view bytes);
  // Buffer for the next read; empty: elsewhere.
  std::span<std::byte> read_buffer();
  // Forgets what nobody can ask for any more, and holds the origin back where readers are slow.
  void after_append();
  void on_reader_advanced();

  // Cause of a timeout.
  enum class Overdue : std::uint8_t { kNothing, kMemory, kOrigin };
  // `limit`: of waiting for either; zero: none.
  [[nodiscard]] Overdue check(MonotonicTime now, Nanoseconds limit);
  // The origin is busy with something else of this response.
  void touch() { since_ = services_.loop.now(); }
  bool waits_for_memory() const { return memory_since_.has_value(); }
  // REQUIRES: waits_for_memory().
  MonotonicTime waits_since() const { return *memory_since_; }
  // Goes on where there is memory now; whether there was. REQUIRES: waits_for_memory().
  bool retry_memory();

  // Somebody who came late wants it stored: begins, where that is still possible.
  void store_if_wanted();
  bool is_storing() const { return writer_.is_under_way(); }
  // True if it is being stored, or may be yet: its head is read until then.
  bool may_store() const { return writer_.may_store(); }
  // True if it is worth finishing for the cache alone, where nobody reads.
  bool is_worth_finishing(std::uint64_t bytes_max) const;
  void stop_storing();
  // The same without a word to the owner; whether it was storing.
  bool forgo_storing() {
    transfer_.end_parts();
    return writer_.stop(body_.get());
  }

  // The stream is let go of.
  void detach() {
    stream_ = {};
    patience_.reset();
  }
  // All has come. Nothing where it was not being stored. REQUIRES: detached.
  std::optional<StoreWriter::Result> complete(const store::ObjectRef& completes);
  // No more comes.
  void abort();

  const store::BodyRef& body() const { return body_; }
  bool is_joinable() const { return joining_ == Joining::kWhileKept; }
  void end_joining() { joining_ = Joining::kNo; }
  bool ends_with_connection() const { return reader_.ends_with_connection(); }
  bool has_nothing_to_come() const { return reader_.is_empty(); }
  std::string_view trailers() const { return reader_.trailers(); }

 private:
  std::size_t append(std::string_view content);
  std::size_t append_here(std::string_view content);
  bool find_memory();
  void wait_for_memory();
  void limit_retention();
  void stop_retaining();
  std::uint64_t lag() const;
  std::uint64_t lag_max() const;
  void pause(MonotonicTime now);
  void end_pause(MonotonicTime now);
  void blame_slowest(MonotonicTime now);
  void question_readers();
  void read_on();

  OriginServices& services_;
  const RequestContext& request_;
  Transfer& transfer_;
  ResponseBodyOwner& owner_;
  OriginStream stream_;
  BodyFraming reader_;
  StoreWriter writer_;
  store::BodyRef body_;
  std::optional<net::BodyDigest> digest_;
  std::span<std::byte> direct_;  // target of the next read, within body_
  Joining joining_ = Joining::kNo;
  MonotonicTime since_{};                      // when bytes came, or could come again
  std::optional<MonotonicTime> paused_since_;  // the readers are behind
  std::optional<MonotonicTime> memory_since_;  // there is no memory
  bool cut_due_ = false;                       // a reader was cut and is to be notified
  std::unique_ptr<net::Timer> patience_;       // with readers that are behind while others wait
  bool others_waited_ = false;                 // at its last look
  MonotonicTime asked_at_{};
  // Since when some reader has read all, in this pause, as far as it is not counted yet.
  std::optional<MonotonicTime> all_read_since_;
};

}  // namespace encore::server
