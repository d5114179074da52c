// Malformed: why a message is refused before a line of it is written as text (RFC 9113 8.1.1), and
// the checks of one field that all messages have in common. Pure, thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/http/field_id.h"

namespace encore::h2 {

// Reasons go to log and counters.
#define ENCORE_H2_MALFORMED(X)                       \
  X(kNone, "none")                                   \
  X(kBadName, "bad-name")                            \
  X(kBadValue, "bad-value")                          \
  X(kConnectionField, "connection-field")            \
  X(kBadTe, "bad-te")                                \
  X(kUnknownPseudoField, "unknown-pseudo-field")     \
  X(kRepeatedPseudoField, "repeated-pseudo-field")   \
  X(kLatePseudoField, "late-pseudo-field")           \
  X(kMissingPseudoField, "missing-pseudo-field")     \
  X(kMisplacedPseudoField, "misplaced-pseudo-field") \
  X(kBadMethod, "bad-method")                        \
  X(kBadScheme, "bad-scheme")                        \
  X(kBadAuthority, "bad-authority")                  \
  X(kBadPath, "bad-path")                            \
  X(kBadProtocol, "bad-protocol")                    \
  X(kBadStatus, "bad-status")                        \
  X(kHostDiffers, "host-differs")                    \
  X(kBadLength, "bad-length")                        \
  X(kLengthMismatch, "length-mismatch")              \
  X(kNoTrailers, "no-trailers")

enum class Malformed : std::uint8_t {
#define ENCORE_H2_REASON(id, name) id,
  ENCORE_H2_MALFORMED(ENCORE_H2_REASON)
#undef ENCORE_H2_REASON
      kCount_
};
inline constexpr std::size_t kMalformedReasons = static_cast<std::size_t>(Malformed::kCount_);
std::string_view to_string(Malformed reason) noexcept;

// Size of a header list as RFC 9113 6.5.2 counts it: each field costs 32 bytes more than its text.
// Counted while a block is decoded, for a byte of a block may stand for 4 KiB of fields.
class ListSize {
 public:
  ListSize(std::size_t bytes_max, std::size_t fields_max)
      : bytes_left_(bytes_max), fields_left_(fields_max) {}
  static constexpr std::size_t kFieldOverhead = 32;

  // False: it is larger than it may be.
  bool add(std::string_view name, std::string_view value) noexcept {
    const std::size_t bytes = name.size() + value.size() + kFieldOverhead;
    if (bytes > bytes_left_ || fields_left_ == 0) return false;
    bytes_left_ -= bytes;
    --fields_left_;
    return true;
  }
  bool is_out_of_fields() const noexcept { return fields_left_ == 0; }

 private:
  std::size_t bytes_left_;
  std::size_t fields_left_;
};

// The checks of a field that is no pseudo field. Its name is a token in lower case, its value has
// neither NUL, CR nor LF, nor white space around it (8.2.1). It is none of a connection's, and TE
// is "trailers" at most (8.2.2). `id` gets what the name is.
Malformed check_field(std::string_view name, std::string_view value, http::FieldId& id) noexcept;
// The same of a value alone.
bool is_sound_value(std::string_view value) noexcept;

// Appends "name: value" and the line's end.
void append_line(std::string_view name, std::string_view value, std::string& text);

}  // namespace encore::h2
