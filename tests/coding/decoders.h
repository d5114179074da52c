// Decodes coded bytes with the libraries that others use, piece by piece.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/coding/coding.h"

namespace encore::coding::test {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Decodes these bytes, which follow those before. Nothing: they are not of this coding.
  virtual std::optional<std::string> decode(std::string_view bytes) = 0;
  // The coded content has ended, and nothing followed it.
  virtual bool has_ended() const = 0;
};

std::unique_ptr<Decoder> make_decoder(Coding coding);

}  // namespace encore::coding::test
