// FilterTransfer: an admission filter on its way from one node to another through the engine, in
// parts that only the receiver can read. The engine has few of them at a time, and none for long.
// docs/decisions/0605.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"
#include "proxy/fleet/fleet_options.h"
#include "proxy/fleet/redis_link.h"
#include "proxy/net/sealing.h"

namespace encore::fleet {

// Bytes of a part, before it is sealed.
inline constexpr std::uint64_t kPartBytes = std::uint64_t{1} << 20U;

// The first value of a transfer, in plain text.
struct TransferHead {
  std::uint64_t bytes = 0;  // size of the whole filter
  net::Digest key{};        // the giver's, public
  friend bool operator==(const TransferHead&, const TransferHead&) = default;
};
std::string encode(const TransferHead& head);
// Nothing: another form or format, or no bytes.
std::optional<TransferHead> decode_transfer_head(std::string_view text);

// Used by one thread.
class FilterTransfer {
 public:
  struct Patience {
    Nanoseconds begin = std::chrono::seconds(6);    // three intervals of presences
    Nanoseconds silence = std::chrono::seconds(3);  // between parts
  };
  // All are borrowed.
  FilterTransfer(const FleetOptions& options, const StopSignal& stop, Patience patience)
      : options_(options), stop_(stop), patience_(patience), link_(options.engine, stop) {}

  // Receives what was sent to `pair`, by `end` and of at most FleetOptions::filter_bytes_max.
  // Allocates what has come. Errors: nothing comes, too much, or what nobody sealed for `pair`.
  Result<std::string> receive(const net::SealingPair& pair, MonotonicTime end);
  // Sends to the owner of a public key (FilterWish::key). Errors: it does not read, it is no key,
  // or the engine refuses: it may be full.
  Result<void> send(const std::string& key, std::string_view bytes);

 private:
  std::string name_of(const std::string& key, std::uint64_t part) const;
  Result<Reply> call(const Command& command);
  Result<std::string> receive_parts(const net::SealingPair& pair, MonotonicTime end);
  Result<std::string> await(const std::string& name, std::uint64_t bytes_max, MonotonicTime end);
  Result<void> send_parts(const std::string& key, std::string_view bytes);
  Result<void> await_taken(const std::string& name);
  Result<void> put(const std::string& name, std::string value);
  void remove(const std::string& key, std::uint64_t part);

  const FleetOptions& options_;
  const StopSignal& stop_;
  const Patience patience_;
  RedisLink link_;
};

}  // namespace encore::fleet
