// ErrorPages: what the proxy says of its own when it has to refuse, in place of its one line of
// text: files of a folder, named for the status ("404.html") or its class ("5xx.html"). Read when
// it is made; immutable then, thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "proxy/http/reply_text.h"

namespace encore::server {

// Limits of one file, and of all together: they are kept in memory.
inline constexpr std::size_t kErrorPageBytesMax = 256 * 1024;
inline constexpr std::size_t kErrorPagesBytesMax = 4 * 1024 * 1024;

class ErrorPages {
 public:
  ErrorPages() = default;
  // Other files of the folder are left alone. `folder` empty: there are none. Errors: a folder or a
  // file that cannot be read, one that is too large, two for one status.
  static Result<ErrorPages> read(const std::string& folder);

  // Names of files that begin with a digit and are no page, as "50x.html" or "404.php"; sorted.
  const std::set<std::string>& misnamed() const { return misnamed_; }

  // The status' own page, or that of its class; null: there is none. Borrowed.
  const http::OwnPage* find(int status) const;

 private:
  std::map<int, http::OwnPage> pages_;  // that of a class under its first digit
  std::set<std::string> misnamed_;
};

}  // namespace encore::server
