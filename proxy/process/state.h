// State that survives a restart under state.directory: the secret seed, the memory of second-hit
// admission, and what changed in which hour. Files are written next to their place, synced and
// renamed, so that a crash leaves the old or the new one, never a part. They are for their owner
// alone, in a directory that others may write to as well: nothing there is followed, written into
// or believed that another user made. Thread-compatible; the saving functions may be called from
// any one thread.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "filter/hash.h"
#include "proxy/net/socket.h"

namespace encore::server {

class StateDirectory {
 public:
  // Makes the directory if need be (mode 0700) and takes it for this process, as long as the object
  // lives. Errors show the path: not to be written to; taken by another process, which is named
  // where the system tells.
  // `lock`: its lock, where another process has handed it over.
  static Result<StateDirectory> open(const std::string& path, net::Socket lock = {});
  // Checks if open() and load_seed() would succeed, but for a directory that another has taken.
  // Makes and takes nothing.
  static Result<void> check(const std::string& path);
  // True if another process has it.
  static bool is_taken(const std::string& path);

  // The seed kept here; nothing where there is none yet. Errors: unreadable, damaged, another
  // user's.
  Result<std::optional<filter::Seed>> load_seed() const;
  Result<void> save_seed(const filter::Seed& seed) const;
  // The saved admission memory (cache::Kernel::save_admission); nothing where there is none.
  Result<std::optional<std::string>> load_admission() const;
  Result<void> save_admission(const std::string& bytes) const;
  // The saved hours of changes (publish::HourlyFilters::save); nothing where there are none.
  Result<std::optional<std::string>> load_changed() const;
  Result<void> save_changed(const std::string& bytes) const;
  const std::string& path() const { return path_; }
  // Its lock, for another process. Borrowed.
  int lock_descriptor() const { return lock_.get(); }
  std::string changed_path() const { return path_ + "/changed"; }
  std::string admission_path() const { return path_ + "/admission"; }

 private:
  explicit StateDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
  net::Socket lock_;  // its file "lock", locked; the file stays
};

// 128 bits from the system's random source. Errors: none to be had.
Result<filter::Seed> random_seed();

}  // namespace encore::server
