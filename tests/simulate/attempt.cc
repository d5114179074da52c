#include "tests/simulate/attempt.h"

#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/check.h"

namespace encore::simulate {
namespace {

// CPU time: a turn without an end is a finding too.
constexpr time_t kSecondsMax = 600;

class Pipe {
 public:
  explicit Pipe(std::FILE* file) : file_(file) {}
  void put(std::uint64_t value) { (void)std::fwrite(&value, sizeof value, 1, file_); }
  void put(const std::string& text) {
    put(text.size());
    (void)std::fwrite(text.data(), 1, text.size(), file_);
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    if (std::fread(&value, sizeof value, 1, file_) != 1) good_ = false;
    return value;
  }
  std::string text() {
    std::string out(good_ ? number() : 0, '\0');
    if (std::fread(out.data(), 1, out.size(), file_) != out.size()) good_ = false;
    return out;
  }
  bool is_good() const { return good_; }

 private:
  std::FILE* file_;
  bool good_ = true;
};

void write_result(const RoundResult& result, Pipe to) {
  to.put(result.finding);
  to.put(result.text);
  to.put(result.configuration);
  for (const std::uint64_t value : {result.digest, result.requests, result.decisions, result.steps,
                                    static_cast<std::uint64_t>(result.simulated_seconds)}) {
    to.put(value);
  }
  to.put(result.counters.size());
  for (const auto& [name, count] : result.counters) {
    to.put(name);
    to.put(count);
  }
}

bool read_result(Pipe from, RoundResult& result) {
  result.finding = from.text();
  result.text = from.text();
  result.configuration = from.text();
  result.digest = from.number();
  result.requests = from.number();
  result.decisions = from.number();
  result.steps = from.number();
  result.simulated_seconds = static_cast<double>(from.number());
  for (std::uint64_t left = from.number(); left > 0 && from.is_good(); --left) {
    std::string name = from.text();
    result.counters[std::move(name)] = from.number();
  }
  return from.is_good();
}

std::string rest_of(std::FILE* file) {
  std::rewind(file);
  std::string out(8000, '\0');
  out.resize(std::fread(out.data(), 1, out.size(), file));
  return out;
}

[[noreturn]] void run_in_child(const Plan& plan, int output, int errors) {
  ::dup2(errors, STDERR_FILENO);
  const itimerval most{.it_interval = {}, .it_value = {.tv_sec = kSecondsMax, .tv_usec = 0}};
  ::setitimer(ITIMER_VIRTUAL, &most, nullptr);
  std::FILE* file = ::fdopen(output, "wb");
  write_result(run_round(plan), Pipe(file));
  (void)std::fflush(file);
  // Nothing of the parent's is to be ended here.
  std::_Exit(0);
}

class Search {
 public:
  Search(const Plan& plan, const RoundResult& failed, std::uint32_t attempts_max, const Run& run)
      : best_{plan, failed}, kind_(failed.finding), left_(attempts_max), run_(run) {}

  const Plan& plan() const { return best_.plan; }
  Shortened take() && { return std::move(best_); }

  // One that fails in the same way, by any of a few seeds.
  bool step(const std::function<void(Plan&)>& change) {
    constexpr std::uint64_t kSeeds = 4;
    Plan wanted = best_.plan;
    change(wanted);
    // Its own seed first; the others are far from those of a run with many rounds.
    for (std::uint64_t i = 0; i < kSeeds; ++i) {
      Plan tried = wanted;
      if (i != 0) tried.seed = proxyfuzz::mix(wanted.seed + i) >> 32U;
      if (!fails(tried)) continue;
      end_at_finding();
      return true;
    }
    return false;
  }

  // No request behind the finding. One that is the last makes another run of it (what happens goes
  // on until then), so that this may fail.
  void end_at_finding() {
    Plan tried = best_.plan;
    tried.requests = std::max<std::uint64_t>(best_.result.requests, 1);
    if (tried.requests < best_.plan.requests) (void)fails(tried);
  }

 private:
  bool fails(const Plan& tried) {
    if (left_ == 0) return false;
    --left_;
    RoundResult result = run_(tried);
    if (result.finding != kind_) return false;
    best_ = {tried, std::move(result)};
    return true;
  }

  Shortened best_;
  std::string kind_;
  std::uint32_t left_;
  const Run& run_;
};

}  // namespace

RunningRound::RunningRound(const Plan& plan) : plan_(plan) {
  (void)std::fflush(stdout);
  int ends[2];
  ENCORE_CHECK(::pipe(ends) == 0, "there is a pipe to a round");
  errors_ = std::tmpfile();
  ENCORE_CHECK(errors_ != nullptr, "there is room for what a round says");
  child_ = ::fork();
  ENCORE_CHECK(child_ >= 0, "there is a process for a round");
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it does not outlive who would read of it
    ::close(ends[0]);
    run_in_child(plan, ends[1], ::fileno(errors_));
  }
  ::close(ends[1]);
  results_ = ::fdopen(ends[0], "rb");
}

RunningRound::~RunningRound() {
  if (child_ >= 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  if (results_ != nullptr) std::fclose(results_);
  std::fclose(errors_);
}

RoundResult RunningRound::wait() {
  RoundResult result;
  const bool good = read_result(Pipe(results_), result);
  int status = 0;
  ::waitpid(std::exchange(child_, -1), &status, 0);
  if (!good || status != 0) {
    result = RoundResult();
    result.finding = "crash";
    result.requests = plan_.requests;
    const std::string how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                                : "status " + std::to_string(WEXITSTATUS(status));
    result.text = "the proxy ended by " + how + "\n" + rest_of(errors_);
  }
  return result;
}

Shortened shorten(const Plan& plan, const RoundResult& failed, std::uint32_t attempts_max,
                  const Run& run) {
  Search search(plan, failed, attempts_max, run);
  search.end_at_finding();
  while (search.plan().requests > 20 && search.step([](Plan& to) { to.requests /= 4; })) {
  }
  for (std::size_t i = 0; i < kFeatures; ++i) {
    const auto feature = static_cast<Feature>(i);
    if (search.plan().features.has(feature)) {
      search.step([&](Plan& to) { to.features.remove(feature); });
    }
  }
  while (search.plan().urls > 1 &&
         search.step([](Plan& to) { to.urls = (to.urls + 1) / 3 + (to.urls < 3); })) {
  }
  while (search.plan().clients > 1 && search.step([](Plan& to) { to.clients /= 2; })) {
  }
  while (search.plan().requests > 2 && search.step([](Plan& to) { to.requests /= 2; })) {
  }
  return std::move(search).take();
}

std::string arguments_of(const Plan& plan) {
  std::string out = "--seed " + std::to_string(plan.seed) + " --mode " +
                    (plan.direction == Direction::kReverse ? "reverse" : "forward") +
                    " --requests " + std::to_string(plan.requests) + " --round " +
                    std::to_string(plan.requests) + " --clients " + std::to_string(plan.clients) +
                    " --urls " + std::to_string(plan.urls);
  const std::string removed = plan.features.removed();
  if (!removed.empty()) out += " --without " + removed;
  return out;
}

}  // namespace encore::simulate
