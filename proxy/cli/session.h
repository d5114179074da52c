// Session: one run of a command: its options, where its output goes, and the proxy that it asks.
// Confined to one thread.
#pragma once

#include <expected>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "config/config.h"
#include "config/load.h"
#include "config/network.h"
#include "proxy/cli/command.h"
#include "proxy/process/token.h"

namespace encore::cli {

struct Streams {
  std::ostream& out;
  std::ostream& err;
  bool is_terminal = false;  // `out` is
};

// A failure of a command, with the exit status that it has.
struct Failure {
  Exit exit = Exit::kRefused;
  std::string message = {};
};
template <typename T>
using Outcome = std::expected<T, Failure>;

// Values by the names of options and arguments.
using Values = std::map<std::string, std::vector<std::string>, std::less<>>;

class Session {
 public:
  // All are borrowed.
  Session(const CommandSpec& command, const Values& values, const config::Sources& sources,
          const Streams& streams)
      : command_(command), values_(values), sources_(sources), streams_(streams) {}

  bool has(std::string_view name) const { return !texts(name).empty(); }
  const std::vector<std::string>& texts(std::string_view name) const;
  // The last one; `usual` where there is none.
  std::string text(std::string_view name, std::string_view usual = {}) const;
  // A whole number of the range; nothing where the option is not given. Errors: kUsage.
  struct Range {
    std::uint64_t min = 0;
    std::uint64_t max = UINT64_MAX;
  };
  Outcome<std::optional<std::uint64_t>> number(std::string_view name, Range range) const;

  // True if the result is to be JSON: --json, or no terminal and no --text.
  bool wants_json() const;
  std::ostream& out() const { return streams_.out; }
  std::ostream& err() const { return streams_.err; }
  bool is_terminal() const { return streams_.is_terminal; }
  // Says why there is no result: "encore purge: ...".
  Exit fail_with(const Failure& failure) const;

  // The configuration of --config and --set; without these that of kUsualConfig if it can be read,
  // else the defaults. Errors: kUsage.
  Outcome<config::Config> config() const;

  struct Request {
    std::string method = "GET";
    std::string target;
    std::string content = {};
    Nanoseconds time_max = std::chrono::seconds(10);
  };
  // The body of the proxy's response. Asks the first listener that can be reached, sockets before
  // addresses. Errors: kUsage for options, kUnreachable, kRefused with the
  // proxy's reason.
  Outcome<std::string> ask(const Request& request);

 private:
  struct Listeners {
    std::vector<config::Endpoint> endpoints;
    std::string token_file;
    bool token_is_demanded = false;  // --token-file names it
    config::Upstream upstream;
  };
  Outcome<Listeners> find() const;
  Outcome<void> read_token(const Listeners& listeners);
  Outcome<std::string> ask_one(const config::Endpoint& endpoint, const Request& request) const;

  const CommandSpec& command_;
  const Values& values_;
  const config::Sources& sources_;
  const Streams& streams_;
  std::optional<Listeners> listeners_;
  std::optional<server::Token> token_;
  std::string no_token_;  // why there is none, where a configuration names a file
};

// The configuration of the packages.
inline constexpr const char* kUsualConfig = "/etc/encore/encore.toml";
// The socket of their proxy.
inline constexpr const char* kUsualSocket = "/run/encore/admin.sock";

// Text as a terminal may have it: bytes that are not printable are "?".
std::string printable(std::string_view text);

// The same with lines kept.
std::string printable_lines(std::string_view text);

}  // namespace encore::cli
