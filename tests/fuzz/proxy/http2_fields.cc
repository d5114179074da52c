#include "tests/fuzz/proxy/http2_fields.h"

#include <algorithm>
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

void end_content(nghttp2_session* session, std::int32_t id, const Fields& trailers,
                 std::uint32_t* flags) {
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (trailers.empty()) return;
  *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
  const std::vector<nghttp2_nv> pairs = pairs_of(trailers);
  check_http2(nghttp2_submit_trailer(session, id, pairs.data(), pairs.size()) == 0, "no trailers");
}

ssize_t padded_length(Random& random, double percent, const nghttp2_frame& frame,
                      std::size_t most) {
  if (!random.percent(percent)) return static_cast<ssize_t>(frame.hd.length);
  return static_cast<ssize_t>(std::min(most, frame.hd.length + random.between(1, 40)));
}

std::string invalid_frame(const nghttp2_frame& frame, int error) {
  return "a frame of type " + std::to_string(frame.hd.type) + " on stream " +
         std::to_string(frame.hd.stream_id) + ": " + nghttp2_strerror(error);
}

std::string invalid_header(const std::uint8_t* name, std::size_t size) {
  return "the field " + std::string(reinterpret_cast<const char*>(name), size) +
         " is malformed, or must not be there";
}

}  // namespace encore::proxyfuzz
