// What survives a restart under state.directory: the secret seed and what second-hit admission
// remembers. Files are written beside their place, synced and renamed, so that a crash leaves the
// old or the new one, never a part. Thread-compatible.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "filter/hash.h"

namespace encore::server {

class StateDirectory {
 public:
  // Makes the directory if need be (mode 0700). Errors show the path.
  static Result<StateDirectory> open(const std::string& path);

  // The seed kept here; nothing where there is none yet. Errors: unreadable or damaged.
  Result<std::optional<filter::Seed>> load_seed() const;
  Result<void> save_seed(const filter::Seed& seed) const;
  // The saved admission memory (cache::Kernel::save_admission); nothing where there is none.
  Result<std::optional<std::string>> load_admission() const;
  Result<void> save_admission(const std::string& bytes) const;
  std::string admission_path() const { return path_ + "/admission"; }

 private:
  explicit StateDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// 128 bits from the system's random source. Errors: none to be had.
Result<filter::Seed> random_seed();

}  // namespace encore::server
