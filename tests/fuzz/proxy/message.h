// HTTP/1 as the fuzzer reads it: an own strict parser of heads, an incremental reader of bodies and
// the directives of Cache-Control. None of it is the proxy's code, so that a mistake there cannot
// hide itself here. Pure; thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace encore::proxyfuzz {

struct Field {
  std::string name;
  std::string value;
  bool operator==(const Field&) const = default;
};
using Fields = std::vector<Field>;

// True if two texts of one length differ in nothing but case.
bool same_but_for_case(std::string_view a, std::string_view b) noexcept;
// Most names differ in their length.
inline bool same_name(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && same_but_for_case(a, b);
}
std::string lower(std::string_view text);
std::string_view trim(std::string_view text) noexcept;
// The first line of that name; nullptr without one.
const Field* find(const Fields& fields, std::string_view name) noexcept;
std::size_t count(const Fields& fields, std::string_view name) noexcept;
// The members of all its lines, split at commas outside quotes.
std::vector<std::string> members(const Fields& fields, std::string_view name);
std::optional<std::int64_t> number(std::string_view text) noexcept;
std::string http_date(std::int64_t unix_seconds);

// Appends its line.
void append_line(const Field& field, std::string& out);

struct Head {
  std::string start;
  Fields fields;
};

// Reads a head off the front of `bytes`. 0: not all there. Otherwise its length, and `error` says
// what is wrong with it, if anything: RFC 9112 2.2, 5 and 5.1 to the letter.
std::size_t read_head(std::string_view bytes, Head& head, std::string& error);

// Parser of the bytes behind a head, piece by piece.
class BodyReader {
 public:
  enum class Kind : std::uint8_t { kNone, kLength, kChunked, kClose, kFrames };
  explicit BodyReader(Kind kind = Kind::kNone, std::uint64_t length = 0)
      : kind_(kind), left_(length) {}

  // Uses up some of `bytes`; `content` is what of it is content. False where it is malformed.
  bool next(std::string_view& bytes, std::string_view& content, std::string& error);
  // It has ended. REQUIRES: kFrames, whose end HTTP/2 tells.
  void end(Fields trailers) {
    trailers_ = std::move(trailers);
    stage_ = Stage::kDone;
  }
  bool is_done() const noexcept;
  Kind kind() const noexcept { return kind_; }
  const Fields& trailers() const noexcept { return trailers_; }

 private:
  enum class Stage : std::uint8_t { kSize, kData, kDataEnd, kTrailers, kDone };
  bool take_line(std::string_view& bytes, std::string& error);

  Kind kind_;
  std::uint64_t left_;
  Stage stage_ = Stage::kSize;
  std::string line_;
  bool line_done_ = false;
  Fields trailers_;
};

// The directives of RFC 9111 5.2 and RFC 5861 that the fuzzer uses.
struct Directives {
  bool no_cache = false, no_store = false, is_private = false, is_public = false;
  bool must_revalidate = false, proxy_revalidate = false, only_if_cached = false;
  std::optional<std::int64_t> max_age, s_maxage, max_stale, min_fresh, swr, sie;
  std::vector<std::string> private_fields, no_cache_fields;
};
Directives directives_of(const Fields& fields);

}  // namespace encore::proxyfuzz
