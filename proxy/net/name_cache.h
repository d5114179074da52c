// NameCache: what name servers said lately, least recently used names leave first. For net/ only.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <expected>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "proxy/net/address.h"
#include "proxy/net/resolve_outcome.h"

namespace encore::net {

class NameCache {
 public:
  struct Entry {
    std::string name;
    std::expected<std::vector<Address>, ResolveFailure> answer;  // port 0
    MonotonicTime expires{};
  };

  explicit NameCache(std::size_t entries_max) : entries_max_(entries_max) {}
  NameCache(NameCache&&) = default;
  NameCache& operator=(NameCache&&) = default;

  // Null: not known, or no longer. Valid until the next call of anything else.
  const Entry* find(std::string_view name, MonotonicTime now);
  // Replaces what is known of the name.
  void put(Entry entry);
  std::size_t size() const { return entries_.size(); }

 private:
  std::size_t entries_max_;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_name_;  // views of the list's
};

}  // namespace encore::net
