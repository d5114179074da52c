// Encodes and decodes disk decisions for the journal. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cache/disk_types.h"

namespace encore::cache {

// Errors of all decoders: malformed bytes. Callers check the decoded values against a kernel.
std::string encode_places(std::span<const DiskPlace> places);
Result<std::vector<DiskPlace>> decode_places(std::string_view bytes);

// Records of one disk and segment.
std::string encode_records(std::span<const DiskRecord> records);
Result<std::vector<DiskRecord>> decode_records(std::string_view bytes);

std::string encode_sequences(std::span<const std::uint64_t> sequences);
Result<std::vector<std::uint64_t>> decode_sequences(std::string_view bytes);

}  // namespace encore::cache
