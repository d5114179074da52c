// Ban: what a client asked to be gone by regular expressions and tags, compiled. The expressions
// are RE2's, whose time is linear in what they are matched with. Immutable, thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

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

  const BanOrder& order() const { return order_; }
  // Whether it speaks of what is stored under this key (with its realm), of this content type, with
  // these tags (a line feed behind each).
  bool holds(std::string_view key, std::string_view content_type, std::string_view tags) const;
  // Whether it can be said to disks, which know prefixes and tags alone: one or the other.
  bool is_for_disks() const;
  // Of URLs, normalised; empty: it is not one of those.
  const std::vector<std::string>& prefixes() const { return prefixes_; }

 private:
  struct Patterns;
  explicit Ban(BanOrder order);

  BanOrder order_;
  std::unique_ptr<const Patterns> patterns_;
  std::vector<std::string> prefixes_;
};

}  // namespace encore::server
