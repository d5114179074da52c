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
  bool forward = false;  // of what forward listeners store; else of all origins
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

  // Of what saved() has made, maybe by another version or on a damaged disk. Errors: it is none.
  static Result<Ban> load(std::string_view saved);
  // What disks keep of it.
  std::string saved() const;

  const BanOrder& order() const { return order_; }
  // Whether it speaks of what is stored under this key (with its realm), of this content type, with
  // these tags (a line feed behind each).
  bool holds(std::string_view key, std::string_view content_type, std::string_view tags) const;
  // Whether it needs no expression: it is a prefix, or tags alone.
  bool is_plain() const;
  // Of URLs, normalised; empty: it is not one of those.
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
