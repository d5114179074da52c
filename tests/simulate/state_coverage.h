// StateCoverage: where requests are in a simulated proxy, and what they are or what happens
// to them there. Each pair is counted; main.cc shows the table, and names the pairs that no round
// has reached. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/process/proxy.h"

namespace encore::simulate {

//  enumerator      name          where the request is
#define ENCORE_SIMULATE_PLACES(X)                                             \
  X(kDisk, "disk", "waits for its record to be read")                         \
  X(kConnecting, "connecting", "its origin's connection is being made")       \
  X(kAsking, "asking", "it is being sent to its origin")                      \
  X(kHead, "head", "waits for its origin's answer")                           \
  X(kWaiting, "waiting", "waits for what another request has asked for")      \
  X(kBody, "body", "is sent the body that comes for it")                      \
  X(kShared, "shared", "is sent the body that comes for another, too")        \
  X(kSending, "sending", "is sent what is all there, as its client takes it") \
  X(kKept, "kept", "it is done, and its connection waits for another")

//  enumerator      name          what it is, or what happens
#define ENCORE_SIMULATE_FATES(X)                                                 \
  X(kHit, "hit", "it is answered from the cache")                                \
  X(kMiss, "miss", "its origin is asked for it")                                 \
  X(kPart, "part", "it asks for a range")                                        \
  X(kCoded, "coded", "its answer is compressed for it")                          \
  X(kValidated, "validated", "what is stored is validated for it")               \
  X(kCollapsed, "collapsed", "another request's answer is its own")              \
  X(kPurged, "purged", "its URL is purged")                                      \
  X(kClientGone, "client gone", "its client leaves")                             \
  X(kOriginGone, "origin gone", "its origin ends the connection, or refuses it") \
  X(kDiskGone, "disk gone", "the disk fails")                                    \
  X(kReload, "reload", "the configuration is read again")                        \
  X(kStop, "stop", "the proxy is to end")

enum class Place : std::uint8_t {
#define ENCORE_SIMULATE_NAME(id, name, meaning) id,
  ENCORE_SIMULATE_PLACES(ENCORE_SIMULATE_NAME)
};
enum class Fate : std::uint8_t {
  ENCORE_SIMULATE_FATES(ENCORE_SIMULATE_NAME)
#undef ENCORE_SIMULATE_NAME
};
inline constexpr auto kPlaceNames = std::to_array<std::string_view>({
#define ENCORE_SIMULATE_TEXT(id, name, meaning) name,
    ENCORE_SIMULATE_PLACES(ENCORE_SIMULATE_TEXT)});
inline constexpr auto kFateNames =
    std::to_array<std::string_view>({ENCORE_SIMULATE_FATES(ENCORE_SIMULATE_TEXT)
#undef ENCORE_SIMULATE_TEXT
    });

// Why a pair cannot be; empty: it can.
std::string_view why_never(Fate fate, Place place);
// The name of the round's counter in which a pair is counted.
std::string counter_of(Fate fate, Place place);

class StateCoverage {
 public:
  using Count = std::function<void(const std::string& name, std::uint64_t count)>;

  // Notes what each request is, where it is now. To be called often.
  void look(server::Proxy& proxy);
  // Something happens to all of them now.
  void note_all(server::Proxy& proxy, Fate fate);
  // Or to those for one key.
  void note_key(server::Proxy& proxy, Fate fate, const filter::Hash128& key);
  // Or to the one with this tag, its field Traceparent; and to those that wait for the same
  // transfer.
  enum class Others : std::uint8_t { kNotMet, kMetToo };
  void note_tag(server::Proxy& proxy, Fate fate, std::uint64_t tag, Others others);
  // Or to those whose origin's connection has this descriptor.
  void note_origin(server::Proxy& proxy, Fate fate, int descriptor);
  // Or to one whose place is known.
  void note(Fate fate, Place place) {
    ++counts_.at(static_cast<std::size_t>(fate)).at(static_cast<std::size_t>(place));
  }
  // Tells what was counted since the last time.
  void tell(const Count& count);

 private:
  using Row = std::array<std::uint64_t, kPlaceNames.size()>;
  std::array<Row, kFateNames.size()> counts_{};
};

}  // namespace encore::simulate
