#include "proxy/process/fleet_filters.h"

#include <thread>

#include "tests/catch.h"

namespace encore::server {
namespace {

config::Config remembering() {
  config::Config config;
  config.admission.policy = config::Policy::kSecondHit;
  config.admission.capacity = 20000;
  return config;
}

// Answers as the test sets it, within the turn of the loop.
struct ScriptedMemory final : MemoryHandover {
  bool is_busy = false;
  Adopted result = AdoptionSummary{.insertions = 7};
  std::string adopted;

  const Token* token() const override { return nullptr; }
  bool save(std::move_only_function<void(Saved)> done) override {
    if (!is_busy) done(std::make_shared<std::string>("saved"));
    return !is_busy;
  }
  bool adopt(std::string bytes, std::move_only_function<void(Adopted)> done) override {
    adopted = std::move(bytes);
    if (!is_busy) done(result);
    return !is_busy;
  }
};

// A loop on a thread of its own.
struct TurningLoop {
  std::unique_ptr<net::Loop> loop = std::move(*net::Loop::create());
  std::thread thread{[this] { loop->run(); }};
  ~TurningLoop() {
    loop->post([this] { loop->stop(); });
    thread.join();
  }
};

TEST_CASE("nodes of the same settings have filters that fit", "[server]") {
  const auto own = filter_facts(remembering());
  REQUIRE(own);
  CHECK_THAT(own->form, Catch::StartsWith("split xxh3 m="));
  CHECK(own->form.size() <= 64);

  config::Config other = remembering();
  other.listen.push_back(other.listen.front());
  other.fleet.node = "n7";
  other.cache.memory_bytes *= 2;
  CHECK(filter_facts(other) == own);

  other = remembering();
  other.admission.capacity *= 2;
  CHECK(filter_facts(other)->form != own->form);
  CHECK(filter_facts(other)->keys == own->keys);
  other = remembering();
  other.admission.hash = filter::HashFamily::kMurmur3;
  CHECK(filter_facts(other)->form != own->form);

  const auto has_other_keys = [&own](const config::Config& config) {
    const auto facts = filter_facts(config);
    return facts && facts->form == own->form && facts->keys != own->keys;
  };
  other = remembering();
  other.cache.query_sort = true;
  CHECK(has_other_keys(other));
  other = remembering();
  other.cache.query_drop = {"utm_*"};
  CHECK(has_other_keys(other));
  other = remembering();
  other.listen.front().mode = other.listen.front().mode == config::Mode::kForward
                                  ? config::Mode::kReverse
                                  : config::Mode::kForward;
  CHECK(has_other_keys(other));
  other = remembering();
  other.origin.emplace_back().host = "a.example";
  CHECK(has_other_keys(other));
}

TEST_CASE("a filter that nobody can adopt is not told of", "[server]") {
  config::Config config = remembering();
  config.fleet.adopt = false;
  CHECK_FALSE(filter_facts(config));
  config = remembering();
  for (const auto policy : {config::Policy::kAlways, config::Policy::kProbation}) {
    config.admission.policy = policy;
    CHECK_FALSE(filter_facts(config));
  }
}

TEST_CASE("a filter is adopted by a node that starts with an empty one", "[server]") {
  using State = FleetFilter::State;
  TurningLoop turning;
  ScriptedMemory memory;
  config::Config config = remembering();
  const FleetFilters filters(*turning.loop, memory, config);
  cache::AdmissionStatistics own;
  own.generations.resize(2);
  CHECK(filters.state_at_start(own, config, false) == State::kWanted);
  CHECK(filters.state_at_start(own, config, true) == State::kOwn);
  own.generations[1].insertions = 1;
  CHECK(filters.state_at_start(own, config, false) == State::kOwn);
  CHECK(filters.facts(own)->known == 1);
  config.admission.adopted_memory_bytes = 0;
  CHECK(filters.state_at_start(own, config, false) == State::kOff);
}

TEST_CASE("a fleet's thread has filters saved and adopted by the loop", "[server]") {
  TurningLoop turning;
  ScriptedMemory memory;
  config::Config config = remembering();
  FleetFilters filters(*turning.loop, memory, config);
  const auto saved = filters.save();
  REQUIRE(saved != nullptr);
  CHECK(*saved == "saved");
  CHECK(filters.adopt("bytes") == 7);
  CHECK(memory.adopted == "bytes");
  memory.result = std::unexpected(AdoptRefusal{.damaged = true, .message = "no filter"});
  CHECK(filters.adopt("bytes").error().message == "no filter");
  memory.is_busy = true;
  CHECK(filters.save() == nullptr);
  CHECK_FALSE(filters.adopt("bytes"));
  memory.is_busy = false;
  config.fleet.adopt = false;
  filters.use(config);
  CHECK(filters.save() == nullptr);
}

TEST_CASE("the end of the process ends a wait for the loop", "[server]") {
  auto loop = net::Loop::create();  // it never runs
  REQUIRE(loop);
  ScriptedMemory memory;
  FleetFilters filters(**loop, memory, remembering());
  std::thread ending([&filters] { filters.stop(); });
  CHECK(filters.save() == nullptr);
  ending.join();
  CHECK(filters.adopt("bytes").error().message == "this process is exiting");
}

}  // namespace
}  // namespace encore::server
