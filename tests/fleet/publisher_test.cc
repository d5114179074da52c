#include "proxy/fleet/publisher.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace encore::fleet {
namespace {

Publication soft_tag(std::uint64_t number) {
  return {.number = number,
          .fields = {"tag", "t" + std::to_string(number), "soft", "1"},
          .is_soft = true};
}

// A publisher whose engine does not exist, and the file of purges that wait, at each change of it.
class WithoutEngine {
 public:
  explicit WithoutEngine(std::vector<Publication> waiting = {}) {
    options_.engine.host = "127.0.0.1";
    options_.engine.port = 1;
    options_.node = "n";
    options_.instance = "i";
    options_.limits = {.count = 2};
    options_.waiting = std::move(waiting);
    host_.keep = [this](const std::string& frames) { return set(file_ + frames); };
    host_.keep_only = [this](const std::string& frames) { return set(frames); };
    host_.forget = [this] { return set({}); };
    times_.keep.store(std::chrono::hours(1));
  }
  // Runs the publisher with each step in turn; a step waits until `is_done` of the file. Returns
  // the file as it was after each change.
  struct Step {
    std::function<void(FleetState&)> act;
    std::function<bool(const std::string&)> is_done;
  };
  std::vector<std::string> run(const std::vector<Step>& steps) {
    FleetState state(options_);
    Publisher publisher(
        options_, host_, times_, state, stop_,
        {.on_published = [](auto, auto) {}, .on_delayed = [](auto) {}, .on_dropped = [] {}});
    std::thread thread([&] { publisher.run(); });
    for (const Step& step : steps) {
      step.act(state);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return step.is_done(file_); });
    }
    stop_.stop();
    state.wake();
    thread.join();
    return files_;
  }

 private:
  Result<void> set(std::string file) {
    const std::lock_guard lock(mutex_);
    file_ = std::move(file);
    files_.push_back(file_);
    changed_.notify_all();
    return {};
  }

  FleetOptions options_;
  FleetHost host_;
  FleetTimes times_{};
  StopSignal stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string file_;
  std::vector<std::string> files_;
};

bool is_everything(const std::string& file) {
  const auto kept = read_frames(file);
  return kept.size() == 1 && decode(kept[0].fields)->order.all;
}

TEST_CASE("a queue that was kept is kept until the purge that replaces it is", "[fleet]") {
  WithoutEngine without;
  const auto add = [](FleetState& state) { (void)state.add(soft_tag(state.next_number())); };
  const auto files = without.run(
      {{.act = add,
        .is_done = [](const std::string& file) { return read_frames(file).size() == 1; }},
       {.act = add,
        .is_done = [](const std::string& file) { return read_frames(file).size() == 2; }},
       {.act = add, .is_done = is_everything}});
  REQUIRE(files.size() >= 3);
  for (const std::string& each : files) CHECK_FALSE(read_frames(each).empty());
}

TEST_CASE("purges that do not fit any more at a start are not lost", "[fleet]") {
  std::vector<Publication> waiting;
  for (std::uint64_t i = 0; i < 3; ++i) {
    waiting.push_back(soft_tag(0));
    waiting.back().is_kept = true;
  }
  WithoutEngine without(waiting);
  const auto files = without.run({{.act = [](FleetState&) {}, .is_done = is_everything}});
  REQUIRE(is_everything(files.front()));
  CHECK(decode(read_frames(files.front())[0].fields)->order.soft);
}

}  // namespace
}  // namespace encore::fleet
