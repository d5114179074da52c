// Files that hold a secret, or what only this user may have written: the one decision who may read
// and write them. Any thread. Why one rule for all of them: docs/decisions/0312.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace encore {

// The required owner of the file: another user may put another secret in its place.
enum class SecretOwner : std::uint8_t { kThisUserOrRoot, kThisUser, kAnybody };

// The result if others than the owner and its group can read the file, or the group can do more
// than read.
enum class OthersRead : std::uint8_t {
  kRefused,  // it is the secret itself
  kTold,     // it holds hashes and digests of secrets
  kAllowed,  // the caller closes it to them
};

struct SecretRules {
  SecretOwner owner = SecretOwner::kThisUserOrRoot;
  OthersRead others_read = OthersRead::kRefused;
};

// Checks if the regular file behind this descriptor, opened by `path`, may be trusted. Its writers
// decide its content: a file that its group or others can write is refused whatever the rules say.
// A link is followed where it belongs to this user or to root. Returns a warning with the remedy;
// empty: there is none. Errors are without the path in front, and name the mode to set: not a
// regular file, not a file of that owner, of another mode.
Result<std::string> check_secret_file(int descriptor, const std::string& path,
                                      const SecretRules& rules);

struct Secret {
  std::string text;
  std::string warning;  // as of check_secret_file()
};
// All of the file, at most `bytes_max`. Errors show nothing of what is in it: those of
// check_secret_file(), not to be read, too large.
Result<Secret> read_secret(const std::string& path, std::size_t bytes_max,
                           const SecretRules& rules);
// The text alone.
Result<std::string> read_secret_file(const std::string& path, std::size_t bytes_max,
                                     SecretOwner owner = SecretOwner::kThisUserOrRoot);

}  // namespace encore
