#include "proxy/process/handover.h"

#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cache/journal.h"
#include "cache/saved_admission.h"
#include "proxy/process/private_file.h"

namespace encore::server {
namespace {

AdoptionSummary sum_of(const filter::AdoptedMemory& memory, std::uint32_t generations) {
  AdoptionSummary taken{.shards = memory.shards(),
                        .generations = generations,
                        .fpr = memory.fpr(generations).bits,
                        .memory_bytes = memory.memory_bytes()};
  for (const auto& sums : memory.sums().first(generations)) {
    taken.bits += sums.bits;
    taken.insertions += sums.insertions;
    taken.keys_estimated += sums.keys_estimated;
  }
  return taken;
}

}  // namespace

std::string adoption_json(const AdoptionSummary& taken) {
  const nlohmann::ordered_json out = {{"generations", taken.generations},
                                      {"shards", taken.shards},
                                      {"bits", taken.bits},
                                      {"insertions", taken.insertions},
                                      {"keys_estimated", std::llround(taken.keys_estimated)},
                                      {"fpr", taken.fpr},
                                      {"memory_bytes", taken.memory_bytes}};
  return out.dump() + "\n";
}

Adopted adopt_memory(cache::Kernel& kernel, const config::Config& config, std::string_view bytes,
                     MonotonicTime now) {
  const auto refused = [](bool damaged, const Error& error) {
    return std::unexpected(AdoptRefusal{.damaged = damaged, .message = error.message});
  };
  const auto adoptable = cache::read_adoptable(bytes);
  if (!adoptable) return refused(true, adoptable.error());
  std::string beside;
  bool is_new = false;
  if (!config.log.decisions.empty()) {
    beside = cache::adopted_path(config.log.decisions, adoptable->checksum);
    is_new = ::access(beside.c_str(), F_OK) != 0;
    if (auto kept = write_private_file(beside, bytes); !kept) return refused(false, kept.error());
  }
  const auto adoption = kernel.adopt(*adoptable, config.admission.adopted_memory_bytes, now);
  if (!adoption) {
    if (is_new) ::unlink(beside.c_str());
    return refused(false, adoption.error());
  }
  return sum_of(*adoptable->memory, adoption->generations);
}

}  // namespace encore::server
