// Reads bytes as replies of a fleet's engine, whole and in pieces.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fleet/read_hostile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const std::size_t piece : {0U, 1U, 7U}) encore::fleet::read_hostile(bytes, piece);
  return 0;
}
