// Adversity of a simulation, by kind and frequency: drawn from the seed when a round begins. Each
// feature can be switched off, so that a failing run can be shortened to what it needs.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/fuzz/proxy/random.h"

namespace encore::simulate {

using proxyfuzz::Random;

// Name in --without, and what it is.
#define ENCORE_SIMULATE_FEATURES(X)                                                     \
  X(kSplit, "split", "what is sent arrives in other pieces")                            \
  X(kShortWrite, "short-write", "a send takes less than there is room for")             \
  X(kInterrupt, "interrupt", "EINTR, and EAGAIN though ready")                          \
  X(kSmallBuffers, "small-buffers", "sockets that hold little")                         \
  X(kLatency, "latency", "connections of up to tens of milliseconds")                   \
  X(kReset, "reset", "the network resets a connection")                                 \
  X(kRefuse, "refuse", "a connection is refused, unreachable or never answered")        \
  X(kDescriptors, "descriptors", "no descriptor is left for a while")                   \
  X(kStarve, "starve", "a worker's turn comes late")                                    \
  X(kClockStep, "clock-step", "the wall clock steps")                                   \
  X(kReload, "reload", "the configuration is read again, and is sometimes another")     \
  X(kDrain, "drain", "the proxy ends and another takes its place")                      \
  X(kPurge, "purge", "a URL is purged, or made stale")                                  \
  X(kRefusal, "refusal", "the store has no room for a while")                           \
  X(kSurplus, "surplus", "origins send more than an answer")                            \
  X(kTunnels, "tunnels", "clients ask for tunnels")                                     \
  X(kPublish, "publish", "clients ask for the filters that the proxy publishes")        \
  X(kDisk, "disk", "there is a disk behind the memory")                                 \
  X(kNames, "names", "origins have names, some of which fail, are slow or are several") \
  X(kMisbehave, "misbehave", "clients leave, end their side early or read slowly")      \
  X(kTrouble, "trouble", "origins fail, stop in the middle, are slow")                  \
  X(kTls, "tls", "clients and origins speak TLS, in pieces, with ends anywhere")        \
  X(kHttp2, "http2", "clients speak HTTP/2, with several requests at once")             \
  X(kRules, "rules", "requests are treated by rules, and by others after a reload")     \
  X(kOriginHttp2, "origin-http2", "origins speak HTTP/2, with several requests at once")

enum class Feature : std::uint8_t {
#define ENCORE_SIMULATE_NAME(name, text, meaning) name,
  ENCORE_SIMULATE_FEATURES(ENCORE_SIMULATE_NAME)
#undef ENCORE_SIMULATE_NAME
      kCount
};
constexpr std::size_t kFeatures = static_cast<std::size_t>(Feature::kCount);

std::string_view to_string(Feature feature);
std::optional<Feature> find_feature(std::string_view name);

class Features {
 public:
  bool has(Feature feature) const { return ((bits_ >> static_cast<unsigned>(feature)) & 1) != 0; }
  void remove(Feature feature) { bits_ &= ~(std::uint32_t{1} << static_cast<unsigned>(feature)); }
  // "split,reset": what is missing, for the command line that repeats a run.
  std::string removed() const;

 private:
  std::uint32_t bits_ = (std::uint32_t{1} << kFeatures) - 1;
};

// Chances are in percent of the calls that they belong to.
struct Adversity {
  static Adversity draw(Random& random, const Features& features);
  // Nothing goes wrong, and nothing takes time.
  static Adversity none() { return {}; }

  double split = 0;
  double short_write = 0;
  double interrupt = 0;
  double small_buffers = 0;
  double reset = 0;   // per delivery
  double refuse = 0;  // per connection to an origin
  double starve = 0;  // per turn
  std::int64_t starve_max = 0;
  std::int64_t latency_max = 0;
  double mean_seconds_between_shortages = 0;  // shortages of descriptors; 0: never
};

}  // namespace encore::simulate
