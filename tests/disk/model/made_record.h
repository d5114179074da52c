// Records with everything in them, made from a seed.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/disk/record.h"

namespace encore::disk {

// So many bytes that look like no others.
std::string random_text(std::mt19937_64& random, std::size_t bytes);

struct MadeRecord {
  RecordFields fields;
  std::string key;
  std::string names;
  std::string meta;
  std::string head;
  std::string body;
  std::vector<iovec> pieces;  // pieces of the body; made by view()

  // Borrowed from here.
  Record view();
};

struct RecordSpec {
  RecordKind kind = RecordKind::kObject;
  std::uint64_t body_bytes = 1000;
  std::size_t pieces = 1;  // that the body lies in
};
MadeRecord made_record(std::mt19937_64& random, const RecordSpec& spec);

// In the meta of what has it.
inline std::string tag(std::uint64_t number) { return "#tag" + std::to_string(number) + "#"; }

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace encore::disk
