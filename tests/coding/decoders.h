// What the libraries that others decode with make of coded bytes, piece by piece.
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
  // What these bytes, behind those before, decode to. Nothing: they are no such coding.
  virtual std::optional<std::string> decode(std::string_view bytes) = 0;
  // The coded content has ended, and nothing followed it.
  virtual bool has_ended() const = 0;
};

std::unique_ptr<Decoder> make_decoder(Coding coding);

}  // namespace encore::coding::test
