#include "tests/fuzz/proxy/http2_fields.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace encore::proxyfuzz {
namespace {

char upper_of(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

nghttp2_nv pair_of(const Field& field) {
  const auto bytes = [](const std::string& text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {.name = bytes(field.name),
          .value = bytes(field.value),
          .namelen = field.name.size(),
          .valuelen = field.value.size(),
          .flags = NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

void check_http2(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "HTTP/2 of the world: %s\n", what);
  std::exit(2);
}

std::string usual_name(std::string_view name) {
  if (name == "etag") return "ETag";
  std::string out(name);
  bool begins = true;
  for (char& c : out) {
    if (begins) c = upper_of(c);
    begins = c == '-';
  }
  return out;
}

std::vector<nghttp2_nv> pairs_of(const Fields& fields) {
  std::vector<nghttp2_nv> out;
  out.reserve(fields.size());
  for (const Field& field : fields) out.push_back(pair_of(field));
  return out;
}

}  // namespace encore::proxyfuzz
