#include "proxy/process/admin.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "base/check.h"
#include "base/text.h"
#include "config/network.h"
#include "proxy/observe/shadow_pages.h"
#include "proxy/process/admin_access.h"
#include "proxy/process/explain_page.h"
#include "proxy/process/form.h"
#include "proxy/process/live_page.h"
#include "proxy/process/purge_token.h"
#include "proxy/process/status_text.h"
#include "proxy/process/styled_page.h"

namespace encore::server {
namespace {

AdminResponse reply(int status, std::string body) {
  AdminResponse response;
  response.status = status;
  response.body = std::move(body);
  response.fields.emplace_back("Cache-Control", "no-store");
  response.fields.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

AdminResponse method_not_allowed(const char* allowed) {
  auto refused = reply(405, "405 Method Not Allowed\n");
  refused.fields.emplace_back("Allow", allowed);
  return refused;
}

AdminResponse busy(std::string_view what) {
  auto refused = reply(503, fmt::format("503 Service Unavailable\n{}\n", what));
  refused.fields.emplace_back("Retry-After", "1");
  return refused;
}

AdminResponse too_large(const AdminRequest& request, std::string_view accepted) {
  const std::string found = request.body_left_out == UINT64_MAX
                                ? "in chunks"
                                : fmt::format("of {} bytes", request.body_left_out);
  return reply(413,
               fmt::format("413 Content Too Large\nA body {}, accepted: {}\n", found, accepted));
}

AdminAccess access_of(Administered& process) {
  return {.admin = process.config().admin, .token = process.memory().token()};
}

AdminResponse token_needed() {
  auto refused = reply(
      401, "401 Unauthorized\nSend Authorization: Bearer with the token of admin.token_file.\n");
  refused.fields.emplace_back("WWW-Authenticate", "Bearer");
  return refused;
}

// Nothing where the request may change something.
std::optional<AdminResponse> refuse_change(Administered& process, const AdminRequest& request) {
  switch (access_of(process).may_change(request)) {
    case AdminAccess::Verdict::kAllowed:
      return std::nullopt;
    case AdminAccess::Verdict::kNoToken:
      return reply(403,
                   "403 Forbidden\nThe admin listener is not on loopback: changes need the token "
                   "of admin.token_file, and none is configured.\n");
    case AdminAccess::Verdict::kWrongToken:
      return token_needed();
  }
  return token_needed();
}

// Those of this process.
const PurgeTokens& purge_tokens() {
  static const PurgeTokens tokens;
  return tokens;
}

void answer_purge(Administered& process, const AdminRequest& request, AdminReply to) {
  if (request.method != "POST") return to.send(method_not_allowed("POST"));
  if (const auto refused = refuse_change(process, request)) return to.send(*refused);
  if (request.body_left_out != 0) {
    return to.send(too_large(request, fmt::format("at most {} bytes", kAdminBodyBytes)));
  }
  auto order = read_purge_order(request);
  if (!order)
    return to.send(reply(400, fmt::format("400 Bad Request\n{}\n", order.error().message)));
  if (!order->tags.empty() && process.config().cache.tag_fields.empty()) {
    return to.send(reply(
        400, "400 Bad Request\ncache.tag_fields is empty, so no response has tags: set it.\n"));
  }
  const bool soft = order->soft;
  const bool dry_run = order->dry_run;
  const std::string_view refusal =
      dry_run ? std::string_view() : purge_tokens().refusal(*order, monotonic_now());
  if (!refusal.empty()) {
    return to.send(
        reply(409, fmt::format("409 Conflict\n{}; nothing was purged. Count it again with "
                               "dry_run=1.\n",
                               refusal)));
  }
  std::string token;
  if (dry_run) {
    token = fmt::format(", \"token\": \"{}\"", purge_tokens().make(*order, monotonic_now()));
  }
  // If it is refused nobody calls, and the answer is still ours to give.
  auto owed = std::make_shared<AdminReply>(std::move(to));
  const bool taken = process.purge(std::move(*order), [owed, soft, dry_run,
                                                       token](const Purged& purged) {
    if (!purged.durable) {
      owed->send(reply(500, fmt::format("500 Internal Server Error\n{} purged, but not for good: "
                                        "{}\n",
                                        purged.count, purged.durable.error().message)));
      return;
    }
    const std::string_view disk = !purged.lazily ? ""
                                  : dry_run      ? ", \"disk\": \"not counted\""
                                                 : ", \"disk\": \"as it is read\"";
    auto done = reply(
        200, fmt::format("{{\"{}\": {}, \"soft\": {}{}{}}}\n", dry_run ? "would_purge" : "purged",
                         purged.count, soft, disk, token));
    done.content_type = "application/json";
    owed->send(std::move(done));
  });
  if (!taken) owed->send(busy("Too many purges are queued, or this process is about to exit."));
}

constexpr std::string_view kPurge = "/purge";
constexpr std::string_view kClear = "/intercept/clear";
constexpr std::string_view kRejected = "/api/intercept";
constexpr std::string_view kLive = "/api/live";
constexpr std::string_view kHistory = "/api/history";
constexpr std::string_view kMemory = "/filter";
constexpr std::string_view kAdopt = "/filter/adopt";

// Nothing where the request may have what is asked for.
std::optional<AdminResponse> refuse_stranger(Administered& process, const AdminRequest& request) {
  if (process.memory().token() == nullptr) {
    return reply(403,
                 "403 Forbidden\nThe admission filter contains its secret seed: set "
                 "admin.token_file, and send its token.\n");
  }
  if (access_of(process).has_token(request)) return std::nullopt;
  return token_needed();
}

void answer_memory(Administered& process, const AdminRequest& request, AdminReply to) {
  if (request.method != "GET") return to.send(method_not_allowed("GET"));
  const auto policy = process.config().admission.policy;
  if (!cache::has_filter(policy)) {
    return to.send(
        reply(404, fmt::format("404 Not Found\nThe admission policy is {}, which has no filter.\n",
                               cache::to_string(policy))));
  }
  auto owed = std::make_shared<AdminReply>(std::move(to));
  const bool taken = process.memory().save([owed](MemoryHandover::Saved saved) {
    auto done = reply(200, "");
    done.content_type = "application/octet-stream";
    done.shared_body = std::move(saved);
    owed->send(std::move(done));
  });
  if (!taken) owed->send(busy("Too many jobs are queued, or this process is about to exit."));
}

std::uint64_t memory_body_max(const Administered& process) {
  const std::uint64_t memory = process.config().admission.adopted_memory_bytes;
  return memory == 0 ? 0 : std::max<std::uint64_t>(kAdminBodyBytes, memory + kSavedFormBytes);
}

std::optional<AdminResponse> refuse_size(const Administered& process, const AdminRequest& request) {
  const std::uint64_t most = memory_body_max(process);
  if (most == 0) {
    return reply(409, "409 Conflict\nadmission.adopted_memory is 0: no filter can be adopted.\n");
  }
  if (request.body_left_out == 0) return std::nullopt;
  return too_large(request, fmt::format("at most {} bytes (admission.adopted_memory)", most));
}

void answer_adopt(Administered& process, AdminRequest& request, AdminReply to) {
  if (request.method != "POST") return to.send(method_not_allowed("POST"));
  if (const auto refused = refuse_size(process, request)) return to.send(*refused);
  auto owed = std::make_shared<AdminReply>(std::move(to));
  const bool taken =
      process.memory().adopt(std::move(request.body), [owed](const Adopted& adopted) {
        if (adopted) {
          auto done = reply(200, taken_json(*adopted));
          done.content_type = "application/json";
          return owed->send(std::move(done));
        }
        const auto& [damaged, message] = adopted.error();
        owed->send(damaged ? reply(400, fmt::format("400 Bad Request\n{}\n", message))
                           : reply(409, fmt::format("409 Conflict\n{}\n", message)));
      });
  if (!taken) {
    owed->send(
        busy("Another filter is being adopted, too many jobs are queued, or this process is about "
             "to exit."));
  }
}

AdminResponse json_reply(std::string body) {
  auto response = reply(200, std::move(body));
  response.content_type = "application/json";
  return response;
}

// The query's client and host.
Result<Rejections::Which> read_which(std::string_view query) {
  const auto form = read_form(query);
  if (!form) return std::unexpected(form.error());
  Rejections::Which which;
  for (const auto& [name, value] : *form) {
    if (name == "client") {
      which.client = net::Address::parse_ip(value, 0);
      if (!which.client) return fail("\"" + value + "\" is not an address");
    } else if (name == "host") {
      which.host = lower_ascii(value);
    } else {
      return fail("\"" + name + "\" is unknown; accepted: client, host");
    }
  }
  return which;
}

void answer_clear(Administered& process, const AdminRequest& request, AdminReply to) {
  if (request.method != "POST") return to.send(method_not_allowed("POST"));
  if (const auto refused = refuse_change(process, request)) return to.send(*refused);
  const auto which = read_which(request.query);
  if (!which) {
    return to.send(reply(400, fmt::format("400 Bad Request\n{}\n", which.error().message)));
  }
  auto done = reply(200, fmt::format("{{\"cleared\": {}}}\n", process.clear_rejections(*which)));
  done.content_type = "application/json";
  to.send(std::move(done));
}

AdminResponse read_rejected(Administered& process, std::string_view query) {
  const Snapshot snapshot = process.snapshot();
  if (!snapshot.intercept) {
    return reply(404, "404 Not Found\nintercept.hosts is empty: no host is decrypted.\n");
  }
  if (query == "format=text") return reply(200, rejected_text(*snapshot.intercept));
  return json_reply(rejected_json(*snapshot.intercept));
}

// The fields of a request as the rules of HTTP read them. Views into `request`.
http::RequestHead head_of(const AdminRequest& request) {
  http::RequestHead head;
  head.method_text = request.method;
  head.method = http::classify_method(request.method);
  head.target = request.path;
  for (const auto& [name, value] : request.fields) head.fields.add(name, value);
  return head;
}

constexpr std::string_view kFilters = "/filters";

bool is_published(const Administered& process, std::string_view path) {
  return process.published() != nullptr && path.starts_with(kFilters) &&
         path.substr(kFilters.size()).starts_with('/');
}

AdminResponse read_published(Administered& process, const AdminRequest& request) {
  publish::Answer answer =
      process.published()->answer(head_of(request), kFilters, request.path, wall_now());
  AdminResponse response;
  response.status = answer.status;
  response.content_type = std::move(answer.content_type);
  response.fields = std::move(answer.fields);
  response.fields.emplace_back("X-Content-Type-Options", "nosniff");
  response.body = std::move(answer.body);
  return response;
}

AdminResponse read_live_page() {
  const LivePage& page = live_page();
  auto response = reply(200, "");
  response.content_type = "text/html; charset=utf-8";
  response.shared_body = page.html;
  response.fields.emplace_back("Content-Security-Policy", page.security_policy);
  response.fields.emplace_back("Referrer-Policy", "no-referrer");
  response.fields.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  response.fields.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  return response;
}

AdminResponse bad_query(std::string_view query, std::string_view accepted) {
  return reply(400, fmt::format("400 Bad Request\n\"{}\", accepted: {}\n", query, accepted));
}

// "since=MILLISECONDS", or all where there is no query.
std::optional<std::int64_t> read_since(std::string_view query) {
  constexpr std::string_view kSince = "since=";
  std::int64_t since = 0;
  if (query.empty()) return since;
  if (!query.starts_with(kSince)) return std::nullopt;
  query.remove_prefix(kSince.size());
  const auto [end, status] = std::from_chars(query.data(), query.data() + query.size(), since);
  if (status != std::errc{} || end != query.data() + query.size()) return std::nullopt;
  return since;
}

AdminResponse read_numbers(Administered& process, const AdminRequest& request) {
  const auto since = read_since(request.query);
  if (!since) return bad_query(request.query, "since= and milliseconds since 1970");
  if (request.path == kHistory) return json_reply(process.live().history().json(*since) + "\n");
  const Snapshot snapshot = process.snapshot();
  return json_reply(live_json(process.live().status(snapshot), snapshot, process.status(),
                              process.live().history(), *since));
}

AdminResponse read_outcome(Administered& process, std::string_view query) {
  constexpr std::string_view kName = "name=";
  const std::string_view name = query.substr(std::min(kName.size(), query.size()));
  const auto found = std::ranges::find(kOutcomeNames, name);
  if (!query.starts_with(kName) || found == kOutcomeNames.end()) {
    return bad_query(query, "name= and an outcome, as in name=first-request");
  }
  const auto index = static_cast<std::size_t>(found - kOutcomeNames.begin());
  const auto outcome = static_cast<Outcome>(index);
  return json_reply(
      outcome_json(outcome, process.snapshot().requests[index], process.live().outcome(outcome)));
}

std::string read_metrics(Administered& process) {
  const Snapshot snapshot = process.snapshot();
  ProcessStatus status = process.status();
  status.ready = process.is_ready();
  status.limits = process.live().status(snapshot).limits;
  return metrics_text(snapshot, status);
}

// Returns a page's response to a GET; nothing if there is no such page.
std::optional<AdminResponse> read_page(Administered& process, const AdminRequest& request) {
  const std::string_view path = request.path;
  if (path == "/") return read_live_page();
  if (path == kLive || path == kHistory) return read_numbers(process, request);
  if (path == "/api/outcome") return read_outcome(process, request.query);
  if (path == "/healthz") return reply(200, "ok\n");
  if (path == "/readyz") {
    return process.is_ready() ? reply(200, "ready\n") : reply(503, "draining\n");
  }
  if (path == "/metrics") {
    auto response = reply(200, read_metrics(process));
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return response;
  }
  if (path == "/api/stats") {
    return json_reply(stats_json(process.snapshot(), process.status()));
  }
  if (path == kStatusApi) {
    const Snapshot snapshot = process.snapshot();
    return reply(200, status_text(process.config(), process.live().status(snapshot), snapshot,
                                  process.status()));
  }
  if (path == kRejected) return read_rejected(process, request.query);
  if (path == "/api/shadow") {
    return json_reply(shadow_json(process.snapshot().shadows));
  }
  if (path == "/shadow") {
    constexpr unsigned kRefreshSeconds = 5;
    return make_page({.title = "shadow policies",
                      .body = shadow_html(process.snapshot().shadows),
                      .refresh_seconds = kRefreshSeconds});
  }
  return std::nullopt;
}

// Nothing where the client may use the listener, and calls it by a name of its own.
std::optional<AdminResponse> refuse_client(Administered& process, const AdminRequest& request) {
  const AdminAccess access = access_of(process);
  if (!access.may_come(request)) {
    return reply(403, fmt::format("403 Forbidden\nClient {} is not in admin.allow_clients.\n",
                                  request.peer.ip_string()));
  }
  if (access.names_us(request)) return std::nullopt;
  return reply(403, fmt::format("403 Forbidden\nHost \"{}\" is not one of this listener's names; "
                                "accepted: localhost, its addresses, admin.allow_hosts.\n",
                                request.field("Host")));
}

bool is_probe(std::string_view path) { return path == "/healthz" || path == "/readyz"; }

}  // namespace

std::size_t admin_body_max(Administered& process, const AdminRequest& head, std::size_t usual) {
  const AdminAccess access = access_of(process);
  if (head.path == kPurge && access.may_change(head) != AdminAccess::Verdict::kAllowed) return 0;
  if (head.path != kMemory && head.path != kAdopt) return usual;
  if (head.path == kMemory || head.method != "POST" || !access.has_token(head)) return 0;
  return memory_body_max(process);
}

void answer_admin(Administered& process, AdminRequest request, AdminReply to) {
  if (!is_probe(request.path)) {
    if (const auto refused = refuse_client(process, request)) return to.send(*refused);
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!reads && !is_same_origin(request)) {
    return to.send(reply(403, "403 Forbidden\nThe request comes from a page of another origin.\n"));
  }
  if (request.path == kPurge) return answer_purge(process, request, std::move(to));
  if (request.path == kClear) return answer_clear(process, request, std::move(to));
  if (request.path == kMemory || request.path == kAdopt) {
    if (const auto refused = refuse_stranger(process, request)) return to.send(*refused);
    if (request.path == kMemory) return answer_memory(process, request, std::move(to));
    return answer_adopt(process, request, std::move(to));
  }
  if (is_published(process, request.path)) return to.send(read_published(process, request));
  if (request.path == kExplainApi || request.path == kExplainPage) {
    if (!reads) return to.send(method_not_allowed("GET, HEAD"));
    return to.send(answer_explain(
        request, [&process](const Explained& asked) { return process.explain(asked); }));
  }
  auto page = read_page(process, request);
  if (!page) {
    return to.send(
        reply(404,
              "404 Not Found\nPages: / /healthz /readyz /metrics /api/stats /api/status /api/live "
              "/api/history /api/outcome /api/explain /explain /api/intercept /api/shadow "
              "/shadow; POST /purge /intercept/clear; with the token: /filter, POST "
              "/filter/adopt\n"));
  }
  to.send(reads ? std::move(*page) : method_not_allowed("GET, HEAD"));
}

}  // namespace encore::server
