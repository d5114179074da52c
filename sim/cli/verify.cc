// encore-sim verify: a proxy's decision journal, replayed through the kernel.
#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include "cache/journal.h"
#include "cache/replay.h"
#include "cache/saved_admission.h"
#include "config/load.h"
#include "sim/cli/commands.h"
#include "sim/trace/source_stream.h"

namespace encore::sim {
namespace {

constexpr std::size_t kShown = 20;

struct Counted {
  std::uint64_t events = 0;
  std::uint64_t differences = 0;
};

class VerifyCommand final : public Command {
 public:
  std::string name() const override { return "verify"; }
  std::string summary() const override {
    return "Replay a proxy's decision journal through the kernel and compare every decision";
  }
  std::string example() const override {
    return "encore-sim verify decisions.journal --config encore.toml";
  }
  void declare(Arguments& a) override {
    a.file("DECISIONS", journal_,
           "journal (log.decisions), with files of adopted filters next to it");
    a.text("--config", config_, "configuration of the proxy, for its admission.seed");
    a.text("--state", state_, "saved filter that the proxy loaded at its start");
  }

  Result<Outcome> run(const Context& context) override {
    begin_reading(context.monitor, {journal_});
    auto source = open_bytes(journal_, &context.monitor);
    if (!source) {
      return std::unexpected(source.error());
    }
    SourceStream file(std::move(*source));
    auto reader = cache::JournalReader::open(file);
    if (!reader) {
      return fail(journal_ + ": " + file.error().value_or(reader.error()).message);
    }
    // A saved state brings its own seed, which is the one that the proxy went on with.
    filter::Seed saved_seed;
    auto states = read_states(saved_seed);
    const auto seed = state_.empty() ? read_seed() : Result<filter::Seed>(saved_seed);
    if (!states || !seed) {
      return std::unexpected(states ? seed.error() : states.error());
    }
    auto replay = cache::Replay::create(
        reader->head(), reader->head().identity_filter && state_.empty() ? filter::Seed{} : *seed,
        [&](std::uint64_t checksum) {
          const auto shard = states->find(checksum);
          return shard != states->end() ? shard->second : read_adopted(checksum);
        });
    if (!replay) {
      return fail(journal_ + ": " + replay.error().message);
    }
    return compare(file, *reader, **replay, context.monitor);
  }

 private:
  // The shards' saved filters by their checksums.
  Result<std::map<std::uint64_t, std::string>> read_states(filter::Seed& seed) const {
    std::map<std::uint64_t, std::string> states;
    if (state_.empty()) {
      return states;
    }
    std::ifstream file(state_, std::ios::binary);
    std::ostringstream bytes;
    if (!file || !(bytes << file.rdbuf())) {
      return fail("cannot read " + state_);
    }
    const std::string content = bytes.str();
    const auto saved = cache::decode_admission(content);
    if (!saved) {
      return fail(state_ + ": " + saved.error().message);
    }
    seed = saved->identity_seed;
    for (const std::string& shard : saved->shards) {
      states[cache::state_checksum(shard)] = shard;
    }
    return states;
  }

  // Reads the memory that the proxy wrote next to its journal when it adopted one; empty if it is
  // not there.
  std::string read_adopted(std::uint64_t checksum) const {
    std::ifstream file(cache::adopted_path(journal_, checksum), std::ios::binary);
    std::ostringstream bytes;
    return file && (bytes << file.rdbuf()) ? bytes.str() : std::string();
  }

  Result<filter::Seed> read_seed() const {
    if (config_.empty()) {
      return filter::Seed{};
    }
    const auto config = config::load_config({.path = config_, .sets = {}});
    if (!config) {
      return std::unexpected(config.error());
    }
    return (*config->admission.seed).value_or(filter::Seed{});
  }

  Result<Outcome> compare(const SourceStream& file, cache::JournalReader& reader,
                          cache::Replay& replay, Monitor& monitor) {
    std::array<Counted, cache::kEventKindCount> kinds{};
    Outcome outcome;
    cache::Event event;
    std::uint64_t events = 0;
    std::uint64_t differences = 0;
    while (true) {
      const auto next = reader.next(event);
      if (monitor.stopped()) {
        break;
      }
      // An archive that is cut off may end at a record's border.
      if (file.error()) {
        return fail(journal_ + ": " + file.error()->message);
      }
      if (!next) {
        return fail(journal_ + ": " + next.error().message);
      }
      if (*next == cache::JournalReader::Next::kEnd) {
        break;
      }
      const auto difference = replay.apply(event);
      if (!difference) {
        return fail(journal_ + ", record " + std::to_string(event.sequence) + ": " +
                    difference.error().message);
      }
      Counted& counted = kinds.at(static_cast<std::size_t>(event.kind));
      ++counted.events;
      if (*difference) {
        ++counted.differences;
        if (++differences <= kShown) {
          outcome.report.notes.push_back(describe(**difference));
        }
      }
      ++events;
    }
    outcome.verdict = differences == 0 ? Verdict::kGood : Verdict::kCheckFailed;
    fill(outcome.report, kinds, replay);
    outcome.report.notes.push_back(std::to_string(events) + " events, " +
                                   std::to_string(differences) + " differences.");
    return outcome;
  }

  void fill(Report& report, const std::array<Counted, cache::kEventKindCount>& kinds,
            const cache::Replay& replay) const {
    report.parameters = {{"decisions", journal_}, {"config", config_}, {"state", state_}};
    Table table{.key = "rows",
                .title = "",
                .columns = {{"kind", "event"},
                            {"events", "events", Style::kCount},
                            {"differences", "differences", Style::kCount}},
                .rows = {}};
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i].events != 0) {
        table.rows.push_back({{"kind", std::string(to_string(static_cast<cache::EventKind>(i)))},
                              {"events", kinds[i].events},
                              {"differences", kinds[i].differences}});
      }
    }
    report.tables.push_back(std::move(table));
    const cache::KernelStatistics kernel = replay.kernel().statistics();
    Table summary{.key = "kernel",
                  .title = "",
                  .columns = {{"evictions", "evictions", Style::kCount},
                              {"expirations", "expirations", Style::kCount},
                              {"rotations", "rotations", Style::kCount},
                              {"objects", "objects at the end", Style::kCount}},
                  .rows = {}};
    summary.rows.push_back({{"evictions", kernel.counters.evictions},
                            {"expirations", kernel.counters.expirations},
                            {"rotations", replay.kernel().admission_statistics().rotations},
                            {"objects", kernel.objects}});
    report.tables.push_back(std::move(summary));
  }

  std::string journal_;
  std::string config_;
  std::string state_;
};

}  // namespace

std::unique_ptr<Command> make_verify_command() { return std::make_unique<VerifyCommand>(); }

}  // namespace encore::sim
