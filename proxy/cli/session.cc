#include "proxy/cli/session.h"

#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "base/cli/numbers.h"
#include "base/units.h"
#include "config/derive.h"
#include "proxy/process/peer_fetch.h"
#include "proxy/settings/names.h"

namespace encore::cli {
namespace {

// Enough for the variants of a key, and for the records of a second.
constexpr std::uint64_t kResponseBytesMax = 16 * kMiB;

Failure usage(std::string message) { return {Exit::kUsage, std::move(message)}; }

// A listener on all addresses is asked on loopback.
config::ServerUrl url_of(const config::Endpoint& endpoint) {
  config::ServerUrl url{.host = endpoint.address, .port = endpoint.port, .socket = endpoint.socket};
  if (!endpoint.socket.empty() || !server::to_address(endpoint).is_unspecified()) return url;
  url.host = endpoint.address.find(':') == std::string::npos ? "127.0.0.1" : "::1";
  return url;
}

// The reason of a page of an error, without its first line, which repeats the status.
std::string reason_of(const std::string& body) {
  const std::size_t end = body.find('\n');
  std::string reason = end == std::string::npos ? body : body.substr(end + 1);
  while (reason.ends_with('\n')) reason.pop_back();
  return printable_lines(reason);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](char c) { return (c < ' ' || c > '~') && c != '\n'; }, '?');
  return out;
}

const std::vector<std::string>& Session::texts(std::string_view name) const {
  static const std::vector<std::string> kNone;
  const auto found = values_.find(name);
  return found == values_.end() ? kNone : found->second;
}

std::string Session::text(std::string_view name, std::string_view usual) const {
  const std::vector<std::string>& all = texts(name);
  return all.empty() ? std::string(usual) : all.back();
}

Outcome<std::optional<std::uint64_t>> Session::number(std::string_view name, Range range) const {
  if (!has(name)) return std::nullopt;
  const auto parsed =
      parse_number(std::string(name), text(name), {.min = range.min, .max = range.max});
  if (!parsed) return std::unexpected(usage(parsed.error().message));
  return *parsed;
}

bool Session::wants_json() const {
  return has("--json") || (!streams_.is_terminal && !has("--text"));
}

Exit Session::fail_with(const Failure& failure) const {
  streams_.out.flush();
  streams_.err << "encore " << command_.path << ": " << failure.message << "\n";
  return failure.exit;
}

Outcome<config::Config> Session::config() const {
  config::Sources sources = sources_;
  if (sources.path.empty() && sources.sets.empty() && ::access(kUsualConfig, R_OK) == 0) {
    sources.path = kUsualConfig;
  }
  auto config = config::load_config(sources);
  if (!config) return std::unexpected(usage("wrong configuration:\n" + config.error().message));
  return *std::move(config);
}

Outcome<Session::Listeners> Session::find() const {
  Listeners listeners;
  listeners.token_file = text("--token-file");
  listeners.token_is_demanded = has("--token-file");
  const bool is_configured = !sources_.path.empty() || !sources_.sets.empty();
  if (has("--admin")) {
    const std::string address = text("--admin");
    const auto endpoint = config::parse_listen_endpoint(address);
    if (!endpoint) {
      return std::unexpected(usage("--admin \"" + address + "\": " + endpoint.error().message +
                                   "; accepted: 127.0.0.1:3129, unix:/run/encore/admin.sock"));
    }
    listeners.endpoints = {*endpoint};
    if (!is_configured) return listeners;
  }
  const auto config = this->config();
  if (!config) return std::unexpected(config.error());
  if (!listeners.token_is_demanded) listeners.token_file = config->admin.token_file;
  listeners.upstream = config->upstream;
  if (!listeners.endpoints.empty()) return listeners;
  listeners.endpoints = config::admin_endpoints(config->admin);
  if (listeners.endpoints.empty()) {
    return std::unexpected(
        usage("admin.address is \"\": there is no admin listener to be asked; accepted: a "
              "configuration with one, or --admin ADDRESS"));
  }
  const bool has_usual = !is_configured && ::access(kUsualSocket, F_OK) == 0;
  if (has_usual) listeners.endpoints.push_back({.address = {}, .socket = kUsualSocket});
  std::ranges::stable_partition(listeners.endpoints,
                                [](const auto& each) { return !each.socket.empty(); });
  return listeners;
}

// The file of a configuration need not be readable for who comes by a socket.
Outcome<void> Session::read_token(const Listeners& listeners) {
  if (listeners.token_file.empty()) return {};
  auto token = server::Token::read(listeners.token_file);
  if (token) {
    token_ = *std::move(token);
  } else if (listeners.token_is_demanded) {
    return std::unexpected(usage("--token-file: " + token.error().message));
  } else {
    no_token_ = token.error().message;
  }
  return {};
}

Outcome<std::string> Session::ask(const Request& request) {
  if (!listeners_) {
    auto found = find();
    if (!found) return std::unexpected(found.error());
    if (auto read = read_token(*found); !read) return std::unexpected(read.error());
    listeners_ = *std::move(found);
  }
  Outcome<std::string> answer;
  std::string unreachable;
  for (std::size_t i = 0; i < listeners_->endpoints.size(); ++i) {
    const config::Endpoint endpoint = listeners_->endpoints[i];
    answer = ask_one(endpoint, request);
    if (answer || answer.error().exit != Exit::kUnreachable) {
      listeners_->endpoints = {endpoint};  // the others are not tried again
      return answer;
    }
    unreachable += (unreachable.empty() ? "" : "; ") + answer.error().message;
  }
  return std::unexpected(
      Failure{Exit::kUnreachable, "no proxy answers: " + unreachable +
                                      "\nIs it running? Name its configuration with --config FILE, "
                                      "or its admin listener with --admin ADDRESS."});
}

Outcome<std::string> Session::ask_one(const config::Endpoint& endpoint,
                                      const Request& request) const {
  server::PeerRequest proxy{.url = url_of(endpoint),
                            .method = request.method,
                            .target = request.target,
                            .content = request.content,
                            .names = server::resolver_options(listeners_->upstream),
                            .bytes_max = kResponseBytesMax,
                            .silence_max = request.time_max,
                            .time_max = request.time_max};
  if (token_) proxy.authorization = token_->field();
  auto asked = server::ask(proxy);
  if (asked) return *std::move(asked);
  const server::FetchFailure& failure = asked.error();
  if (failure.status == 0) return std::unexpected(Failure{Exit::kUnreachable, failure.message});
  std::string reason = reason_of(failure.body);
  if (reason.empty()) reason = failure.message;
  constexpr int kUnauthorized = 401;
  if (failure.status == kUnauthorized) {
    reason += no_token_.empty() ? "\nName its file with --token-file FILE." : "\n" + no_token_;
  }
  return std::unexpected(
      Failure{Exit::kRefused, "refused (" + std::to_string(failure.status) + "): " + reason});
}

}  // namespace encore::cli
