// Purged: what was purged, or written to, and must not be stored until its origin was asked for it
// again: in memory and, where the purge named it by its keys, on a disk, over the ends of proxies.
// One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/proxy/world.h"
#include "tests/simulate/tiers.h"

namespace encore::simulate {

class Purged {
 public:
  using OnFault = std::function<void(const std::string& what)>;

  // `world` is borrowed.
  explicit Purged(proxyfuzz::World& world) : world_(world) {}

  // The index of a disk forgets objects that are purged by their key. For the others rules are
  // kept, which reads check.
  enum class By : std::uint8_t { kKey, kRule };
  // `keys` are those of the URL. Answers of its origin to requests before that time are gone.
  void note(const proxyfuzz::Url& url, std::vector<StoredKey> keys, By by, double time);
  // Other rules make other keys.
  void forget() { watched_.clear(); }
  // Finds objects that are stored though they were purged. Between turns.
  void look(server::Proxy& proxy, const OnFault& on_fault);
  // Clients come back for all of it.
  void ask_again();
  std::size_t count() const { return watched_.size(); }

 private:
  struct Watched {
    std::uint64_t url = 0;
    std::string path;
    std::vector<StoredKey> keys;
    By by = By::kKey;
    double time = 0;
    double alone_until = 0;  // see Url
  };
  // Null: it was asked for again, or is no URL any more.
  const proxyfuzz::Url* still_gone(const Watched& each) const;

  proxyfuzz::World& world_;
  std::deque<Watched> watched_;  // the latest behind
};

}  // namespace encore::simulate
