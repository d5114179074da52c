#include "proxy/process/admin_orders.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "proxy/process/admin_reply.h"
#include "proxy/process/form.h"
#include "proxy/process/purge_token.h"

namespace encore::server {
namespace {

// Those of this process.
const PurgeTokens& purge_tokens() {
  static const PurgeTokens tokens;
  return tokens;
}

// The result on all nodes, as members of a JSON object behind others; empty: there is one node.
std::string fleet_members(const PurgeResult& purged) {
  if (!purged.fleet) return {};
  // Names of nodes are letters, digits and "._:-".
  const auto list = [](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& each : names) text += (text.empty() ? "\"" : ", \"") + each + "\"";
    return text;
  };
  return fmt::format(", \"published\": {}, \"confirmed\": [{}], \"unconfirmed\": [{}]",
                     purged.fleet->is_published, list(purged.fleet->confirmed),
                     list(purged.fleet->unconfirmed));
}

}  // namespace

void answer_purge(ProcessControl& process, const AdminRequest& request, AdminReply to) {
  if (request.body_left_out != 0) {
    return to.send(too_large(request, fmt::format("at most {} bytes", kAdminBodyBytes)));
  }
  auto order = read_purge_order(request);
  if (!order) return to.send(wrong_request(order.error().message));
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
                                                       token](const PurgeResult& purged) {
    if (!purged.durable) {
      owed->send(reply(500, fmt::format("500 Internal Server Error\n{} purged, but not for good: "
                                        "{}\n",
                                        purged.count, purged.durable.error().message)));
      return;
    }
    if (purged.fleet && purged.fleet->is_dropped) {
      owed->send(busy(fmt::format(
          "{} purged here, but too many purges wait for the engine: the other nodes purge "
          "everything once it is back.",
          purged.count)));
      return;
    }
    const std::string_view disk = !purged.lazily ? ""
                                  : dry_run      ? ", \"disk\": \"not counted\""
                                                 : ", \"disk\": \"as it is read\"";
    auto done = reply(
        200, fmt::format("{{\"{}\": {}, \"soft\": {}{}{}{}}}\n", dry_run ? "would_purge" : "purged",
                         purged.count, soft, disk, fleet_members(purged), token));
    done.content_type = "application/json";
    owed->send(std::move(done));
  });
  if (!taken) owed->send(busy("Too many purges are queued, or this process is about to exit."));
}

void answer_reload(ProcessControl& process, AdminReply to) {
  auto owed = std::make_shared<AdminReply>(std::move(to));
  process.reload([owed](const Result<void>& done) {
    owed->send(done ? json_reply("{\"reloaded\": true}\n")
                    : reply(409, fmt::format("409 Conflict\nnothing has changed{}\n",
                                             done.error().message)));
  });
}

void answer_upgrade(ProcessControl& process, AdminReply to) {
  auto owed = std::make_shared<AdminReply>(std::move(to));
  process.upgrade([owed](const Result<pid_t>& done) {
    owed->send(done ? json_reply(fmt::format("{{\"upgraded\": true, \"process\": {}}}\n", *done))
                    : reply(409, fmt::format("409 Conflict\nnothing has changed: {}\n",
                                             done.error().message)));
  });
}

void answer_drain(ProcessControl& process, AdminReply to) {
  const auto most = std::chrono::duration<double>(process.config().timeouts.drain).count();
  const Snapshot snapshot = process.snapshot();
  process.drain();
  to.send(
      json_reply(fmt::format("{{\"draining\": true, \"connections\": {}, "
                             "\"seconds_max\": {:g}}}\n",
                             snapshot.connections_open, most)));
}

void answer_memory(ProcessControl& process, AdminReply to) {
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

std::uint64_t memory_body_max(const ProcessControl& process) {
  const std::uint64_t memory = process.config().admission.adopted_memory_bytes;
  return memory == 0 ? 0 : std::max<std::uint64_t>(kAdminBodyBytes, memory + kSavedFormBytes);
}

namespace {

std::optional<AdminResponse> refuse_size(const ProcessControl& process,
                                         const AdminRequest& request) {
  const std::uint64_t most = memory_body_max(process);
  if (most == 0) {
    return reply(409, "409 Conflict\nadmission.adopted_memory is 0: no filter can be adopted.\n");
  }
  if (request.body_left_out == 0) return std::nullopt;
  return too_large(request, fmt::format("at most {} bytes (admission.adopted_memory)", most));
}

}  // namespace

void answer_adopt(ProcessControl& process, AdminRequest& request, AdminReply to) {
  if (const auto refused = refuse_size(process, request)) return to.send(*refused);
  auto owed = std::make_shared<AdminReply>(std::move(to));
  const bool taken =
      process.memory().adopt(std::move(request.body), [owed](const Adopted& adopted) {
        if (adopted) {
          auto done = reply(200, adoption_json(*adopted));
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

namespace {

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

}  // namespace

void answer_clear(ProcessControl& process, const AdminRequest& request, AdminReply to) {
  const auto which = read_which(request.query);
  if (!which) return to.send(wrong_request(which.error().message));
  to.send(json_reply(fmt::format("{{\"cleared\": {}}}\n", process.clear_rejections(*which))));
}

}  // namespace encore::server
