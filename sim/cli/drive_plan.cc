#include "sim/cli/drive_plan.h"

#include <algorithm>
#include <utility>

#include "cache/charge.h"
#include "config/derive.h"
#include "sim/replay/trace_object.h"

namespace encore::sim {
namespace {

constexpr std::size_t kBatch = 4096;
// In front of a cache key: what a forward listener of the proxy stored.
constexpr std::string_view kForwardRealm = "forward:";

std::uint64_t scaled(std::uint64_t size_bytes, const DrivePlanOptions& options) {
  const double size = static_cast<double>(size_bytes) * options.size_scale;
  return size >= static_cast<double>(options.size_max) ? options.size_max
                                                       : static_cast<std::uint64_t>(size);
}

Result<void> check(const DrivePlan& plan, const config::Config& config) {
  if (!*config.admission.seed) {
    return fail(
        "the configuration has no admission.seed: set one, because a random seed cannot be "
        "simulated");
  }
  if (config.admission.hash != filter::HashFamily::kXxh3) {
    return fail("admission.hash of the configuration is " +
                std::string(to_string(config.admission.hash)) + ", accepted: xxh3");
  }
  if (config.admission.rotate_after != Nanoseconds(0)) {
    return fail(
        "admission.rotate_after of the configuration makes decisions depend on the clock, "
        "accepted: 0s");
  }
  for (const DrivenObject& object : plan.objects) {
    if (object.ttl_seconds != 0 && object.ttl_seconds < kSureTtlSeconds) {
      return fail("a TTL of " + std::to_string(object.ttl_seconds) +
                  " s makes freshness depend on the clock; accepted with --config: 0, or " +
                  std::to_string(kSureTtlSeconds) + " s and more");
    }
  }
  return {};
}

std::string key_of(const DrivenObject& object, std::string_view authority) {
  return std::string(kForwardRealm) + "http://" + std::string(authority) + path_of(object);
}

// The head is stored without the empty line at its end, and reserved for with some room.
StoreCharge charge_of(std::size_t key_bytes) {
  return {
      .head_bytes = key_bytes + cache::kRecordBytes + head_bytes() - 2,
      .reserved_bytes = key_bytes + cache::kRecordBytes + head_bytes() + cache::kHeadGrowthBytes};
}

}  // namespace

Result<DrivePlan> read_drive_plan(TraceReader& reader, const DrivePlanOptions& options,
                                  Monitor& monitor) {
  DrivePlan plan;
  ObjectTable table;
  std::vector<Request> batch(kBatch);
  while (plan.requests.size() < options.requests_max && !monitor.stopped()) {
    const std::uint64_t left = options.requests_max - plan.requests.size();
    const auto count =
        reader.read(std::span(batch).first(std::min<std::uint64_t>(left, batch.size())));
    if (!count) {
      return std::unexpected(count.error());
    }
    if (*count == 0) {
      break;
    }
    for (const Request& request : std::span(batch).first(*count)) {
      const ReplayRequest numbered = table.number(request);
      if (numbered.object == plan.objects.size()) {
        plan.objects.push_back({.id = request.key,
                                .ttl_seconds = request.ttl_seconds == kNoTtl
                                                   ? options.default_ttl_seconds
                                                   : request.ttl_seconds});
      }
      plan.objects[numbered.object].size_bytes = scaled(numbered.object_bytes, options);
      plan.requests.push_back(numbered.object);
    }
  }
  if (plan.requests.empty() && !monitor.heard) {
    return fail("the trace has no counted request");
  }
  return plan;
}

Result<DriveSimulation> simulate_drive(const DrivePlan& plan, const config::Config& config,
                                       std::string_view authority, Monitor& monitor) {
  if (auto fine = check(plan, config); !fine) {
    return std::unexpected(fine.error());
  }
  const auto kernel = config::kernel_options(config);
  if (!kernel) {
    return std::unexpected(kernel.error());
  }
  DriveSimulation simulation;
  simulation.outcomes.reserve(plan.requests.size());
  auto run = ReplayRun::create({.kernel = *kernel,
                                .charge = charge_of(key_of({}, authority).size()),
                                .outcomes = &simulation.outcomes});
  if (!run) {
    return std::unexpected(run.error());
  }
  simulation.run = std::move(*run);
  monitor.begin("simulating", plan.requests.size());
  std::vector<ReplayRequest> batch;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const std::uint32_t number = plan.requests[i];
    const DrivenObject& object = plan.objects[number];
    const std::string key = key_of(object, authority);
    batch.push_back({.key = filter::identify(kernel->identity_seed, key).hash,
                     .size_bytes = object.size_bytes,
                     .object_bytes = object.size_bytes,
                     .ttl_seconds = object.ttl_seconds,
                     .object = number});
    if (batch.size() == kBatch || i + 1 == plan.requests.size()) {
      simulation.run->feed(batch);
      batch.clear();
      monitor.done += kBatch;
      if (i + 1 < plan.requests.size() && monitor.stopped()) {
        break;
      }
    }
  }
  simulation.run->finish();
  return simulation;
}

}  // namespace encore::sim
