// Fetches from another proxy's admin listener: the saved form of a peer's admission memory, or a
// page. Blocks the thread that calls it, and needs no loop of the caller's.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "config/network.h"
#include "proxy/net/resolver.h"

namespace encore::server {

struct PeerRequest {
  config::ServerUrl url;  // its admin listener's, or that of a proxy in front of it
  std::string method = "GET";
  std::string target = "/filter";
  std::string content = {};                           // a POST's
  std::string authorization = {};                     // the field's value; empty: none
  std::string ca_file = {};                           // for https; empty: the system's certificates
  net::Resolver::Options names = {};                  // how its name is looked up
  std::uint64_t bytes_max = 0;                        // more are not taken
  std::string bound_by = {};                          // source of the limit, for the message
  Nanoseconds silence_max = std::chrono::seconds(5);  // until it is connected, and between reads
  Nanoseconds time_max = std::chrono::seconds(60);    // for all
};

// Asks a peer that answers 503 again each second, until `time_max` has passed. Errors show the URL
// and the failure: a name that is not found, no connection, a response other than 200 with a stated
// length, one that is too long, cut off or too late. A SIGTERM or SIGINT that is held back is an
// error, too. Nothing more is allocated than what has come, and a read.
Result<std::string> fetch(const PeerRequest& neighbour);

// The same, and the failure in its parts.
struct FetchFailure {
  int status = 0;  // the response's; 0: there was none
  std::string message = {};
  std::string body = {};  // the response's, at most kRefusalBytesMax
};
inline constexpr std::uint64_t kRefusalBytesMax = 64 * 1024;
std::expected<std::string, FetchFailure> ask(const PeerRequest& neighbour);

}  // namespace encore::server
