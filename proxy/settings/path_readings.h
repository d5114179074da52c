// The ways in which servers may read a path: lists, rules and routes that match paths accept one
// only if each of its readings gives the same result. Pure, thread-safe. Why a difference is
// refused: docs/decisions/0311, which took the place of docs/decisions/0231.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace encore::server {

// Why a request is refused (400) whose path leads to one thing in one reading and to another in
// another.
inline constexpr std::string_view kAmbiguousPath = "ambiguous-path";

struct PathReadings {
  // More are not looked for.
  static constexpr std::size_t kMax = 16;
  // Nor is more than this copied to find them: a path of 64 KiB with escapes in escapes would cost
  // a hundred copies of it. One with a single kind of escape takes three.
  static constexpr std::size_t kCopiedBytesMax = std::size_t{128} << 10U;

  std::vector<std::string> others;  // without the path itself
  std::size_t copied_bytes = 0;     // to find them
  bool is_complete = true;          // false: there may be more
  bool reveals_dots = false;        // some segment was "." or "..", in some reading
};

// The further readings of a normalised path, in normal form themselves. Some undo escapes once,
// twice and on ("%252F" is "%2F" is "/", also "%u002F", overlong UTF-8 and full-width forms). Some
// read rows of slashes as one, and backslashes as slashes. Others leave out the text after ";" in a
// segment, spaces and dots that end a segment, or control characters, or end at an escaped NUL, "?"
// or "#". Each of these counts, and any of them one after the other. Dot segments that appear are
// removed. An escape of a character with no other form in a path, as of "é", is not another
// reading. Empty if all servers read it unchanged, which costs one pass over its bytes.
//
// `as_sent` is the path before it was normalised; its dot segments that are written as escapes
// ("%2e%2e") are dot segments to us, and names to others. Empty: not known.
PathReadings other_readings(std::string_view path, std::string_view as_sent = {});

// The readings of one path for several questions: they are found once, when they are first needed.
class AnyReading {
 public:
  // Both are borrowed.
  explicit AnyReading(std::string_view path, std::string_view as_sent)
      : path_(path), as_sent_(as_sent) {}
  // True if `holds` of the path or of another reading of it; true where not all are known.
  template <typename Holds>
  bool is(Holds&& holds) {
    if (holds(path_)) return true;
    if (!others_) others_ = other_readings(path_, as_sent_);
    return !others_->is_complete || std::ranges::any_of(others_->others, holds);
  }

 private:
  std::string_view path_;
  std::string_view as_sent_;
  std::optional<PathReadings> others_;
};

// True if `holds` of the path and of each other reading of it, or of none of them.
template <typename Holds>
bool all_readings_agree(std::string_view path, std::string_view as_sent, Holds&& holds) {
  const PathReadings readings = other_readings(path, as_sent);
  const bool as_it_stands = holds(path);
  return readings.is_complete && std::ranges::all_of(readings.others, [&](const auto& reading) {
           return holds(reading) == as_it_stands;
         });
}

// True if a path has other readings for the way in which it was sent, so that another one with the
// same normal form has none.
bool has_readings_as_sent(std::string_view as_sent);

// A glob for paths with its escapes in capitals, and what a path has as an escape alone as one.
std::string normal_glob(std::string_view glob);
std::vector<std::string> normal_globs(const std::vector<std::string>& globs);

// True if a glob says itself in which of several ways a path is written: with an escape, a row of
// slashes, a backslash or ";".
bool names_its_form(std::string_view glob);

}  // namespace encore::server
