// Token: the secret by which who may have the admission memory is known. Read from a file, compared
// in the same time whatever is compared, never shown. A value, thread-compatible.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace encore::server {

class Token {
 public:
  static constexpr std::size_t kBytesMin = 16;
  static constexpr std::size_t kBytesMax = 256;

  // The one line of the file. Errors show the path, never what is in it: not to be read, not a file
  // of this user or of root that others cannot read, not kBytesMin to kBytesMax letters, digits
  // and -._~+/= (RFC 6750 2.1).
  static Result<Token> read(const std::string& path);
  static Result<Token> parse(std::string_view text);

  // True if the value of an Authorization field is "Bearer" and this.
  bool authorizes(std::string_view field) const;
  // Returns the value of a field that a request with the token must have.
  std::string field() const { return "Bearer " + std::string(bytes_.data(), size_); }

 private:
  std::array<char, kBytesMax> bytes_{};  // zeros behind it
  std::size_t size_ = 0;
};

}  // namespace encore::server
