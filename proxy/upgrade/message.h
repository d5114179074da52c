// Messages between an old process and the new one that takes its place: bytes in, values out. A
// message has a length, a type and a version, and then fields of a number and bytes each. Readers
// skip unknown types and unknown fields, so that two versions of the program understand each other.
// Pure; thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace encore::upgrade {

// The numbers are the protocol: one is never given another meaning.
enum class MessageType : std::uint16_t {
  kHello = 1,        // New: it has a configuration.
  kFailed = 2,       // Either: the upgrade is over, and why.
  kIdentity = 3,     // Old: seed, name in Via, counts of what else follows.
  kListener = 4,     // Old: sockets of one address.
  kAdmin = 5,        // Old: the socket of the admin listener.
  kDisk = 6,         // Old: the file of one disk, with its lock.
  kState = 7,        // Old: the lock of the state directory.
  kTickets = 8,      // Old: keys of TLS session tickets.
  kPredecessor = 9,  // Old: the channel to a process that it has replaced.
  kOffered = 10,     // Old: nothing else follows before the commit.
  kReady = 11,       // New: it could serve.
  kCommit = 12,      // Old: it may; the saved state is with it.
  kCommitted = 13,   // New: it does.
  kPurge = 14,       // Either: a purge is to be repeated.
  kPurged = 15,      // Either: it was.
  kBuried = 16,      // Old: records on disk that are replaced or invalidated.
  kStatus = 17,      // Old: its clients that are left.
  kCounts = 18,      // Old, at its end: what it has counted since the commit.
  kEnd = 19,         // New: the old one is to end as by SIGTERM.
};

// Numbers of fields, likewise.
enum class Field : std::uint16_t {
  kText = 1,     // a reason, a version
  kName = 2,     // an address or a path, as the configuration has it
  kBytes = 3,    // raw data
  kNumber = 4,   // decimal digits
  kAddress = 5,  // a bound address
  kSeed = 6,     // hexadecimal digits
  kConnections = 7,
  kTunnels = 8,
  kSeconds = 9,
  kPid = 10,
  kUrl = 11,
  kPrefix = 12,
  kTag = 13,
  kKey = 14,
  kBanHost = 15,
  kBanUrl = 16,
  kBanType = 17,
  kBanTag = 18,
  kFlags = 19,
};

inline constexpr std::uint16_t kProtocolVersion = 1;
inline constexpr std::size_t kMessageBytesMax = 128UL * 1024;
// The limit of one that goes over in memory, and not in a packet.
inline constexpr std::size_t kLargeMessageBytesMax = 16UL * 1024 * 1024;

struct Message {
  MessageType type = MessageType::kFailed;
  std::uint16_t version = kProtocolVersion;
  std::vector<std::pair<Field, std::string>> fields = {};

  Message& add(Field field, std::string value) {
    fields.emplace_back(field, std::move(value));
    return *this;
  }
  Message& add_number(Field field, std::uint64_t value) {
    return add(field, std::to_string(value));
  }
  // The first of that number; null: there is none.
  const std::string* find(Field field) const;
  // Nothing: there is none, or it is no number.
  std::optional<std::uint64_t> number(Field field) const;
  // Empty where there is none.
  std::string_view text(Field field) const;
};

std::string encode(const Message& message);
// Errors: `bytes` are no whole message, or more than `bytes_max`.
Result<Message> decode(std::string_view bytes, std::size_t bytes_max = kMessageBytesMax);

}  // namespace encore::upgrade
