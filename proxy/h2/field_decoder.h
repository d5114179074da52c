// FieldDecoder: the HPACK decoder of one direction of a connection (RFC 7541), which is nghttp2's.
// Fields are passed on one by one while a block is decoded, so that their receiver can stop in the
// middle of it. Confined to its session's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

struct nghttp2_hd_inflater;

namespace encore::h2 {

class FieldSink {
 public:
  // A field of the block; the views are valid until the call returns. False: stop.
  virtual bool on_field(std::string_view name, std::string_view value) = 0;
  // True if it has stopped for the number of fields rather than for their size.
  virtual bool is_out_of_fields() const { return false; }

 protected:
  ~FieldSink() = default;
};

class FieldDecoder {
 public:
  enum class Status : std::uint8_t {
    kMore,     // the block goes on
    kEnd,      // the block has ended
    kStopped,  // by the sink: the decoder is of no more use, for fields were left out
    kBroken,   // no block (RFC 7541), or memory is out: the decoder is of no more use
  };

  FieldDecoder();

  // Decodes a piece of a block. `is_last`: the block ends with it.
  Status decode(std::string_view piece, bool is_last, FieldSink& sink);

  // Its memory, with the table: about 2 KB for a client of few fields, at most 22 KB.
  std::size_t memory_bytes() const;

 private:
  struct Free {
    void operator()(nghttp2_hd_inflater* inflater) const;
  };
  std::unique_ptr<nghttp2_hd_inflater, Free> inflater_;
};

}  // namespace encore::h2
