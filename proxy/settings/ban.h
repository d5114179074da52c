// Ban: what a client asked to be gone by regular expressions and tags, compiled. The expressions
// are RE2's, whose time is linear in what they are matched with. Immutable, thread-safe. Why RE2,
// and why disks keep few of them: docs/decisions/0221.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"

namespace encore::server {

// All that are given must hold.
struct BanOrder {
  bool forward = false;  // for objects of forward listeners; else of all origins
  std::string host = {};
  std::string url = {};
  std::string content_type = {};
  std::vector<std::string> tags = {};  // any of them
};

class Ban {
 public:
  // Errors: no regular expression, or one that takes too much memory.
  static Result<Ban> create(BanOrder order);
  Ban(Ban&&) noexcept;
  Ban& operator=(Ban&&) noexcept;
  ~Ban();

  // Loads the result of saved(), maybe from another version or a damaged disk. Errors: it is not a
  // ban.
  static Result<Ban> load(std::string_view saved);
  // Returns the form for disks.
  std::string saved() const;

  const BanOrder& order() const { return order_; }
  // True if it matches the object stored under this key (with its realm), with this content type
  // and these tags (a line feed behind each).
  bool holds(std::string_view key, std::string_view content_type, std::string_view tags) const;
  // True if it needs no expression: it is a prefix, or tags alone.
  bool is_plain() const;
  // Prefixes of URLs, normalised; empty: it has none.
  const std::vector<std::string>& prefixes() const { return prefixes_; }

 private:
  struct Patterns;
  explicit Ban(BanOrder order);

  BanOrder order_;
  std::unique_ptr<const Patterns> patterns_;
  std::vector<std::string> prefixes_;
};

// Bans as disks keep them, each compiled once for as long as it is asked for. Thread-safe.
class SavedBans {
 public:
  // Ban::holds(); true of what is no ban, for nobody knows what it was of.
  bool hold(std::string_view saved, std::string_view key, std::string_view content_type,
            std::string_view tags);

 private:
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Ban>, std::less<>> bans_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::server
