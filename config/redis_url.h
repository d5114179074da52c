// Address of the Redis engine that carries purges between nodes. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace encore::config {

struct RedisUrl {
  std::string host;  // a name or a numeric address without brackets; empty with a socket
  std::uint16_t port = 6379;
  std::string socket;    // absolute file name of a Unix socket; empty: host and port
  std::string user;      // empty: the engine's default user
  std::string password;  // empty: none; a secret
  std::uint32_t database = 0;
  std::string stream = "encore:purges";  // key of the stream; others begin with it
  friend bool operator==(const RedisUrl&, const RedisUrl&) = default;
};

inline constexpr std::size_t kStreamNameBytesMax = 128;
inline constexpr std::uint32_t kDatabaseMax = 65535;

// Reads "redis://[[user]:password@]host[:port][/database][?stream=NAME]" and
// "unix://[[user]:password@]/path/of.sock[?db=N][&stream=NAME]". User and password are
// percent-decoded. Errors never show the text, which may hold a password: another scheme, no valid
// host, a port outside of 1..65535, a database above kDatabaseMax, an unknown parameter, a stream
// name with other characters than letters, digits and ":._-{}".
Result<RedisUrl> parse_redis_url(std::string_view text);

// The engine without user and password, for logs and pages: "redis://host:6379/0".
std::string shown(const RedisUrl& url);

// A node's name: 1 to 64 letters, digits and "._:-".
bool is_node_name(std::string_view name);

}  // namespace encore::config
