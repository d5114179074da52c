// CodedBody: content on its way into a coding, piece by piece: read from where it lies or comes
// from, and no further ahead of its reader than a window, unless all that is made is kept. The cost
// of a turn of the loop is bounded. Content that comes slowly is flushed, so that it arrives.
//
// Content that ends early ends what is made of it early: it is never completed.
//
// Confined to its worker; it may be destroyed in the call that it makes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "proxy/coding/encoder.h"
#include "proxy/exchange/body_reader.h"
#include "proxy/exchange/coding_memory.h"
#include "proxy/exchange/coding_turn.h"
#include "proxy/net/loop.h"
#include "proxy/net/timer.h"
#include "proxy/store/body.h"

namespace encore::server {

class CodedBody {
 public:
  // Limit of coded bytes beyond what the reader has taken.
  static constexpr std::uint64_t kWindowBytes = 64 * 1024;

  // When what was given is flushed, where no more is there.
  enum class Flush : std::uint8_t { kAtOnce, kSoon };
  enum class Keep : std::uint8_t { kNothing, kAll };

  struct Made {
    std::unique_ptr<coding::Encoder> encoder;
    CodingMemory::Share memory;  // the encoder's
    store::BodyRef body;         // gets the coded bytes; retains them
    Flush flush = Flush::kSoon;
    Keep keep = Keep::kNothing;
  };
  // `on_more`: from the loop; produce() is to be called. `turn` is borrowed.
  CodedBody(net::Loop& loop, CodingTurn& turn, Made made, std::function<void()> on_more);
  CodedBody(const CodedBody&) = delete;
  CodedBody& operator=(const CodedBody&) = delete;

  // The content: to be set before the first produce().
  BodyReader& source() { return source_; }
  const BodyReader& source() const { return source_; }
  const store::BodyRef& body() const { return made_.body; }
  bool keeps_all() const { return made_.keep == Keep::kAll; }
  std::uint64_t encoder_bytes() const { return made_.memory.bytes(); }

  // Codes what is there, as far as a turn and the window allow; the reader has read up to here.
  void produce(std::uint64_t position);
  // More could be done in another turn, as far as is known.
  bool wants_turn() const { return wants_turn_; }
  // It could not go on for want of memory.
  bool ran_out() const { return ran_out_; }

 private:
  bool code(std::size_t& budget);
  bool encode(std::span<const std::byte> in, coding::Encoder::InputAction then, std::size_t& used);
  void wait();
  bool flush();
  void retry();

  CodingTurn& turn_;
  Made made_;
  const std::function<void()> on_more_;
  BodyReader source_;
  net::Timer later_;
  bool is_due_ = false;  // input so far is to be flushed now
  bool is_flushing_ = false;
  bool unflushed_ = false;  // something was given since the last flush
  bool wants_turn_ = false;
  bool ran_out_ = false;
  std::uint32_t vain_ = 0;  // attempts in a row that found no memory
};

}  // namespace encore::server
