// The load that is driven through a proxy: objects of a trace, and the order of the requests.
// Values and pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filter/hash.h"

namespace encore::sim {

// An object of the synthetic origin. It stands in its path as a whole, so that the origin needs no
// list, and objects of other sizes are other objects to a proxy that still knows the former ones.
struct DrivenObject {
  filter::Hash128 id;
  std::uint64_t size_bytes = 0;   // up to kDrivenSizeMax
  std::uint32_t ttl_seconds = 0;  // its max-age
};
inline constexpr std::uint64_t kDrivenSizeMax = 9'999'999'999;

struct DrivePlan {
  std::vector<DrivenObject> objects;
  std::vector<std::uint32_t> requests;  // indices of objects, in order
};

// "/o/<32 hex digits>/<size, 10 digits>/<max-age, 10 digits>": of the same length for all.
std::string path_of(const DrivenObject& object);
// The object of a path; nothing for any other.
std::optional<DrivenObject> object_at(std::string_view path);

// The fields of a 200 for it, without Date and Content-Length. All responses' heads have the same
// length in bytes, Content-Length included: head_bytes(), status line and empty line counted.
using Fields = std::vector<std::pair<std::string, std::string>>;
Fields fields_of(const DrivenObject& object);
std::string etag_of(const DrivenObject& object);
std::size_t head_bytes();

// The bytes of its body from `offset` on.
void fill_body(const DrivenObject& object, std::uint64_t offset, std::span<char> out);
// True if these are the bytes of its body from `offset` on.
bool is_body(const DrivenObject& object, std::uint64_t offset, std::span<const char> bytes);

}  // namespace encore::sim
