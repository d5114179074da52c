// Encoder: puts content into a coding piece by piece, in memory that is bounded whatever comes. It
// only ever encodes: nothing here can be made to grow by what a peer sends. Pure, confined to one
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace encore::coding {

class Encoder {
 public:
  // The wanted treatment of the input.
  enum class InputAction : std::uint8_t {
    kMore,   // more comes
    kFlush,  // all that was given can be decoded from what is made
    kEnd,    // the content ends here
  };
  struct Step {
    std::size_t used = 0;  // bytes of the input
    std::size_t made = 0;  // bytes of the output
    // All input is used and all output made; else there was no space for it: call again with the
    // rest and the same `then`.
    bool is_done = false;
    bool is_broken = false;  // nothing more can be made
  };

  virtual ~Encoder() = default;
  // REQUIRES: `out` is not empty; kEnd was not done.
  virtual Step encode(std::span<const std::byte> in, std::span<std::byte> out,
                      InputAction then) = 0;
};

}  // namespace encore::coding
