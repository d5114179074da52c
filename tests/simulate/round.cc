#include "tests/simulate/round.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "config/derive.h"
#include "tests/fuzz/proxy/client.h"
#include "tests/fuzz/proxy/intruders.h"
#include "tests/fuzz/proxy/origin.h"
#include "tests/simulate/counts.h"
#include "tests/simulate/host.h"
#include "tests/simulate/names.h"
#include "tests/simulate/published.h"
#include "tests/simulate/purges.h"
#include "tests/simulate/refusing_store.h"
#include "tests/simulate/ring_loop.h"
#include "tests/simulate/saved_hours.h"
#include "tests/simulate/seeded_openssl.h"
#include "tests/simulate/shortages.h"
#include "tests/simulate/stored.h"
#include "tests/simulate/timing.h"
#include "tests/simulate/tries.h"

namespace encore::simulate {
namespace {

using proxyfuzz::now;
constexpr std::uint16_t kProxyPort = 3128;
constexpr double kHangSeconds = 130;  // simulated, without an answer, and unexplained
constexpr double kDrainSeconds = 200;
// Pause of an origin under TLS within a head, in seconds.
constexpr double kPauses = 0.1;
constexpr std::int64_t kHoursKept = 3;  // as settings.cc has it
// Steps between two checks of held things: there are some 25 steps to a request.
constexpr std::uint64_t kStepsToLook = 200;
// A run that goes on for so long without its clients is not ending.
constexpr std::uint64_t kStepsWithoutEnd = 200'000'000;

class Round {
 public:
  explicit Round(const Plan& plan);
  ~Round();
  RoundResult run();

 private:
  bool has(Feature feature) const { return plan_.features.has(feature); }
  bool comes_by_tls() const { return ring_.has_tls[0]; }
  void report(const std::string& kind, const std::string& text);
  void follow_roads();
  void fail_disk(Random& random);
  void begin_tls();
  bool begin_origin_http2();
  bool begin_rules();
  void take_other_rules();
  void start();
  void await_hour();
  void schedule_happenings();
  // Calls `what` again and again, with a mean of so many seconds between.
  void happen(double mean_seconds, Random& random, const std::function<void()>& what);
  config::Config read_config();
  void look_at_purged();
  void reload(Random& random);
  void step_clock(Random& random);
  void begin_drain(Random& random);
  void all_leave(Random& random);
  void look();
  void rest();
  void end_rest();
  void finish();

  Plan plan_;
  RoundResult result_;
  Random random_;
  SeededOpenssl openssl_;
  System system_;
  RingLoop loop_;
  proxyfuzz::World world_;
  Shortages shortages_{system_, world_, loop_};
  proxyfuzz::Oracle oracle_;
  std::optional<proxyfuzz::TlsEnds> tls_;
  bool asks_by_tls_ = false;
  std::optional<proxyfuzz::Origin> origin_;
  proxyfuzz::Ring ring_;
  std::vector<std::unique_ptr<proxyfuzz::AnyClient>> clients_;
  std::optional<proxyfuzz::Intruders> intruders_;
  std::optional<proxyfuzz::Tunnels> tunnels_;
  std::optional<PublishedOracle> published_;
  std::optional<SavedHours> hours_;
  using Others = StateCoverage::Others;
  StateCoverage coverage_;
  Tries tries_{world_};
  std::optional<Purges> purges_;
  proxyfuzz::Loop::Timer next_hour_{};
  bool disk_fails_ = false;
  Random disk_purges_{plan_.seed, 's', 1};
  std::optional<SlowDisk> disk_;  // for all proxies, one after the other
  std::unique_ptr<Host> host_;
  std::vector<std::unique_ptr<Random>> streams_;
  Settings settings_;
  // Draws the next rules, in rounds with rules; they come when no request is in progress.
  std::optional<Random> rules_;
  bool other_rules_wait_ = false;
  System::Traffic traffic_before_;               // counts earlier proxies
  std::optional<proxyfuzz::Accounts> accounts_;  // nothing is logged without
  // Nobody begins anything until held things were checked.
  bool resting_ = false;
  double rest_since_ = 0;
  bool draining_ = false;
  bool stopped_ = false;
  double drain_since_ = 0;
};

Round::Round(const Plan& plan)
    : plan_(plan),
      random_(plan.seed, 'r', 0),
      openssl_(Random(plan.seed, 'o', 2)),
      system_(plan.seed, draw_adversity(plan.seed, plan.features), wall_start(plan.seed)),
      loop_(system_),
      world_(plan.seed, plan.direction == Direction::kReverse, plan.urls,
             plan.features.has(Feature::kTrouble) ? proxyfuzz::World::Origins::kFailing
                                                  : proxyfuzz::World::Origins::kReliable),
      oracle_(world_),
      ring_{.loop = loop_,
            .world = world_,
            .oracle = oracle_,
            .proxy_port = kProxyPort,
            .absolute = plan.direction == Direction::kForward,
            .hosts = {"127.0.0.1:8000"},
            .requests_left = plan.requests,
            .misbehave = plan.features.has(Feature::kMisbehave),
            .http2 = plan.features.has(Feature::kHttp2) ? proxyfuzz::draw_http2(plan.seed) : 0} {
  Random behind(plan.seed, 'b', 0);
  if (has(Feature::kSurplus) && behind.percent(30)) world_.surplus = behind.pick({1, 10});
  world_.on_finding = [this](const proxyfuzz::Finding& finding) {
    report(finding.kind, finding.text);
  };
  system_.on_fault = [this](const std::string& what) { report("system", what); };
  follow_roads();
  // Here all have one clock, and what it shows is what has happened.
  world_.slack = kSlack;
  world_.way = way_max(system_.adversity());
  world_.piece = piece_max(system_.adversity());
  StoreConduct::refuses = false;
  StoreConduct::on_leak = [this](const std::string& what) { report("leak", what); };
  begin_tls();
  const bool origin_http2 = begin_origin_http2();
  const bool has_rules = begin_rules();
  const bool names = has(Feature::kNames) && random_.percent(40) && !has_rules;
  if (names) {
    ring_.hosts = {"127.0.0.1:8000", "plain.test:8000", "many.test:8000", "slow.test:8000"};
    // Behind a broken handshake, too, an address at which nobody is may be waited for.
    world_.passed_by = kLongTrouble;
  }
  Names::fail = names ? random_.pick({0.0, 1.0, 5.0}) : 0;
  Random publishing(plan.seed, 'f', 0);
  // When the proxy has read the whole of an answer does not show over HTTP/2.
  const bool publishes =
      has(Feature::kPublish) && publishing.percent(60) && !has_rules && !origin_http2;
  // Objects that are published as resident are those in memory; hits from disk say nothing of that.
  Random disks(plan.seed, 'v', 0);
  const bool disk = has(Feature::kDisk) && !publishes && disks.percent(70);
  const std::int64_t slowest = disks.pick<std::int64_t>({0, 1, 20, 200, 200, 2000}) * 1'000'000;
  disk_.emplace(system_, Random(plan.seed, 'v', 1), slowest);
  disk_fails_ = disk && disks.percent(40);
  Random logging(plan.seed, 'j', 0);
  const bool logs = logging.percent(60);
  world_.strips_tags = logging.percent(50);
  settings_ = {.direction = plan.direction,
               .port = kProxyPort,
               .names = names,
               .publishes = publishes,
               .disk = disk,
               .strip_tags = world_.strips_tags,
               .log_format = logs ? proxyfuzz::Accounts::kFormat : std::string_view(),
               .listen_tls = comes_by_tls() ? tls_->listen_line() : "",
               .origin_authority = asks_by_tls_ ? tls_->certificate_file() : "",
               .origin_http2 = origin_http2,
               .rules = has_rules ? &world_.rules : nullptr};
  result_.configuration = draw_configuration(settings_, random_);
  // A tunnel takes a client's descriptor over, and with it no TLS.
  if (has(Feature::kTunnels) && plan.direction == Direction::kForward && !comes_by_tls() &&
      !has_rules) {
    tunnels_.emplace(loop_, world_, kTunnelPort);
    if (names) tunnels_->host = random_.pick<const char*>({"127.0.0.1", "plain.test", "slow.test"});
    ring_.tunnels = &*tunnels_;
  }
  if (logs) ring_.accounts = &accounts_.emplace(world_);
  if (publishes) {
    ring_.published = &published_.emplace(world_, ring_, *origin_, kHoursKept);
    hours_.emplace(world_, *published_);
    await_hour();
  }
  purges_.emplace(ring_, coverage_, published_ ? &*published_ : nullptr,
                  Purges::Kinds{.tags = !publishes, .prefixes = !has_rules});
  world_.on_written = [this](const proxyfuzz::Url& url, double time) {
    if (host_ != nullptr) purges_->note_written(url, time, *host_);
  };
  world_.pick_to_write = [this](Random& random) {
    return host_ == nullptr ? nullptr : purges_->pick_to_write(random, *host_);
  };
  if (has(Feature::kPurge)) {
    disk_->on_done = [this](SlowDisk::Done what) {
      if (host_ == nullptr || draining_ || stopped_) return;
      purges_->purge_under_way(what, disk_purges_, *host_);
    };
  }
}

// Follows what happens to requests, for the table of roads.
void Round::follow_roads() {
  system_.on_origin_break = [this](int descriptor) {
    if (host_ != nullptr) coverage_.note_origin(host_->proxy(), Fate::kOriginGone, descriptor);
  };
  world_.on_origin_gone = [this](const proxyfuzz::Request& request) {
    if (host_ == nullptr) return;
    tries_.note(request);
    coverage_.note_tag(host_->proxy(), Fate::kOriginGone, request.tag, Others::kMetToo);
  };
  ring_.on_leave = [this](const proxyfuzz::Request* request) {
    if (host_ == nullptr) return;
    if (request == nullptr) return coverage_.note(Fate::kClientGone, Place::kKept);
    coverage_.note_tag(host_->proxy(), Fate::kClientGone, request->tag, Others::kNotMet);
  };
}

// Published filters, and origins with several names, have other URLs than rules make of them.
bool Round::begin_rules() {
  Random random(plan_.seed, 'z', 0);
  if (!has(Feature::kRules) || !random.percent(45)) return false;
  rules_.emplace(random);
  world_.host = ring_.hosts.front();
  if (!asks_by_tls_) world_.other_host = "localhost:8000";
  world_.rules = proxyfuzz::RuleTable::draw(*rules_, 1);
  ring_.has_rules = true;
  return true;
}

void Round::take_other_rules() {
  other_rules_wait_ = false;
  purges_->purged().forget();
  world_.replace_rules(proxyfuzz::RuleTable::draw(*rules_, 1));
  result_.configuration = with_rules(result_.configuration, settings_);
  host_->reload(read_config());
  // Each worker takes them over in a turn of its own, which may be late; what comes before it is
  // treated by the earlier ones.
  constexpr double kTurn = 0.05;
  loop_.after(kTurn + way_max(system_.adversity()), [this] {
    if (!draining_ && !other_rules_wait_) ring_.paused = false;
  });
}

// Draws the sides that speak TLS in this round, and its effect on the timing.
void Round::begin_tls() {
  Random random(plan_.seed, 'y', 1);
  const bool comes = random.percent(40);
  const bool asks = random.percent(40) && plan_.direction == Direction::kReverse;
  const double broken = random.pick({0.0, 0.5});
  if (!has(Feature::kTls) || !(comes || asks)) return;
  tls_.emplace(random);
  tls_->keep_files_in_memory();
  ring_.tls = &*tls_;
  ring_.has_tls = {comes, false};
  asks_by_tls_ = asks;
  if (!asks) return;
  // A head comes in more pieces, with pauses between.
  world_.way += 2 * world_.way + kPauses;
  world_.passed_by = kShortTrouble;
  if (has(Feature::kTrouble)) world_.broken_handshakes = broken;
  world_.surplus = 0;
}

// Makes the origin, which speaks HTTP/2 in some rounds.
bool Round::begin_origin_http2() {
  Random random(plan_.seed, '5', 0);
  const bool speaks =
      random.percent(45) && has(Feature::kOriginHttp2) && plan_.direction == Direction::kReverse;
  const auto http2 = proxyfuzz::Http2Server::draw_plan(random);
  if (speaks && asks_by_tls_) tls_->choose_http2(random);
  origin_.emplace(loop_, world_, asks_by_tls_ ? &*tls_ : nullptr, speaks ? &http2 : nullptr);
  if (!speaks) return false;
  oracle_.has_lower_names = true;
  // A head waits for a frame of another stream's.
  world_.way += 4 * world_.way + kPauses;
  world_.surplus = 0;
  return true;
}

Round::~Round() { StoreConduct::on_leak = nullptr; }

void Round::report(const std::string& kind, const std::string& text) {
  if (stopped_) return;
  stopped_ = true;
  result_.finding = kind;
  result_.text = text;
}

// Reads the configuration, and applies what follows from it to the world.
config::Config Round::read_config() {
  const config::Config config = read_configuration(result_.configuration);
  const auto whole_seconds = [](Nanoseconds time) {
    return static_cast<std::uint64_t>(time.count() / 1'000'000'000);
  };
  world_.object_max.note(now(), config::effective_max_object(config));
  world_.stale_while_revalidate.note(now(), whole_seconds(config.cache.stale_while_revalidate));
  world_.stale_if_error.note(now(), whole_seconds(config.cache.stale_if_error));
  world_.heuristic_with_cookie.note(now(), config.cache.heuristic_with_cookie ? 1U : 0U);
  if (tunnels_) {
    const auto seconds = [](Nanoseconds time) { return static_cast<double>(time.count()) / 1e9; };
    tunnels_->idle_min = std::min(tunnels_->idle_min, seconds(config.timeouts.tunnel_idle));
    tunnels_->drain_min = seconds(config.timeouts.drain);
  }
  return config;
}

void Round::start() {
  const config::Config config = read_config();
  Host::OnLog on_log;
  if (accounts_) on_log = [this](std::string_view lines) { accounts_->take(lines); };
  host_ = std::make_unique<Host>(
      system_, config,
      [this](const std::string& kind, const std::string& what) { report(kind, what); }, on_log,
      *disk_);
  host_->on_readers_cut = [this](std::uint64_t count) {
    world_.readers_cut += count;
    world_.count("readers cut for memory", count);
  };
  host_->on_revoked = [this](std::uint64_t count) {
    world_.connections_revoked += count;
    world_.count("connections revoked", count);
  };
  if (hours_) hours_->start(random_, *host_);
}

void Round::await_hour() {
  const std::int64_t hour = std::int64_t{3600} * 1'000'000'000;
  const double left = static_cast<double>(hour - system_.wall_now() % hour) / 1e9;
  loop_.cancel(next_hour_);
  next_hour_ = loop_.after(left, [this] {
    next_hour_ = {};
    published_->look();
    await_hour();
  });
}

void Round::happen(double mean_seconds, Random& random, const std::function<void()>& what) {
  const double unit = static_cast<double>(random.below(1000) + 1) / 500;
  loop_.after(mean_seconds * unit, [this, mean_seconds, &random, what] {
    if (ring_.requests_left == 0 && ring_.active == 0) return;
    what();
    happen(mean_seconds, random, what);
  });
}

void Round::schedule_happenings() {
  const auto stream = [this](char kind) -> Random& {
    streams_.push_back(
        std::make_unique<Random>(plan_.seed, static_cast<std::uint64_t>(kind), std::uint64_t{1}));
    return *streams_.back();
  };
  happen(0.25, stream('t'), [this] {
    if (host_ != nullptr) host_->tick();
  });
  Random& saves = stream('w');
  if (published_) {
    happen(1, saves, [this, &saves] {
      if (host_ == nullptr) return;
      host_->look_at_resident();
      if (saves.percent(30)) hours_->save(*host_);
    });
  }
  happen(0.2, stream('l'), [this] { look(); });
  happen(1.2, stream('i'), [this] { rest(); });
  happen(0.1, stream('a'), [this] {
    const auto on_fault = [this](const std::string& what) { report("tags", what); };
    if (host_ != nullptr) look_at_tags(host_->proxy(), world_, on_fault);
  });
  Random& purges = stream('p');
  if (has(Feature::kPurge)) {
    happen(0.03, purges, [this, &purges] {
      if (host_ != nullptr && !draining_) purges_->purge_something(purges, *host_);
    });
  }
  Random& returns = stream('0');
  if (settings_.disk) {
    happen(0.03, returns, [this, &returns] {
      if (host_ != nullptr && !draining_) purges_->come_back_to_disk(returns, *host_);
    });
  }
  Random& reloads = stream('n');
  if (has(Feature::kReload)) happen(1.5, reloads, [this, &reloads] { reload(reloads); });
  Random& rules = stream('x');
  if (has(Feature::kReload) && rules_) {
    happen(0.7, rules, [this] {
      if (host_ != nullptr && !draining_) other_rules_wait_ = ring_.paused = true;
    });
  }
  Random& clocks = stream('k');
  if (has(Feature::kClockStep) && clocks.percent(25)) {
    happen(3, clocks, [this, &clocks] { step_clock(clocks); });
  }
  Random& shortages = stream('d');
  const double mean = system_.adversity().mean_seconds_between_shortages;
  if (mean != 0)
    happen(mean, shortages, [this, &shortages] { shortages_.of_descriptors(shortages); });
  Random& refusals = stream('m');
  if (has(Feature::kRefusal) && refusals.percent(30)) {
    happen(2, refusals, [this, &refusals] { shortages_.of_store(refusals); });
  }
  Random& failures = stream('g');
  if (disk_fails_) happen(2, failures, [this, &failures] { fail_disk(failures); });
  Random& drains = stream('e');
  if (has(Feature::kDrain) && drains.percent(60)) {
    happen(1.5, drains, [this, &drains] { begin_drain(drains); });
  }
}

void Round::look_at_purged() {
  const auto on_fault = [this](const std::string& what) { report("purged", what); };
  purges_->purged().look(host_->proxy(), on_fault);
}

void Round::reload(Random& random) {
  if (host_ == nullptr || draining_) return;
  if (random.percent(30)) {
    // While transfers are in progress, and nothing else changes.
    result_.configuration = redraw_object_max(result_.configuration, random);
    world_.count("reloads: another limit for what is stored");
  } else if (random.percent(40)) {
    result_.configuration = redraw_configuration(result_.configuration, random);
    world_.count("reloads: another configuration");
  } else {
    world_.count("reloads: the same configuration");
  }
  coverage_.note_all(host_->proxy(), Fate::kReload);
  host_->reload(read_config());
}

void Round::step_clock(Random& random) {
  const std::int64_t seconds = random.pick<std::int64_t>({-3600, -5, -1, 1, 5, 3600});
  system_.step_wall_clock(seconds * 1'000'000'000);
  if (seconds < 0) world_.note_set_back(now(), static_cast<double>(-seconds));
  const double wrong = static_cast<double>(system_.wall_now()) / 1e9 -
                       static_cast<double>(proxyfuzz::wall_seconds());
  world_.clock_error = std::max(world_.clock_error, std::abs(wrong) + 1);
  // Which hour it is for the proxy is known: it looks, as it does a few times a second.
  if (host_ != nullptr) host_->tick();
  if (published_) {
    published_->look();
    await_hour();
  }
  world_.count("steps of the wall clock");
}

void Round::fail_disk(Random& random) {
  if (host_ == nullptr || draining_) return;
  coverage_.note_all(host_->proxy(), Fate::kDiskGone);
  shortages_.of_disk(random, *disk_);
}

void Round::begin_drain(Random& random) {
  if (host_ == nullptr || draining_ || ring_.requests_left == 0) return;
  draining_ = true;
  drain_since_ = world_.last_ending = world_.ending_since = now();
  ring_.paused = true;
  if (has(Feature::kMisbehave) && random.percent(40)) all_leave(random);
  coverage_.note_all(host_->proxy(), Fate::kStop);
  host_->drain();
  world_.count("drains");
}

// Things that nobody waits for any more keep a proxy from its end as well.
void Round::all_leave(Random& random) {
  for (const auto& client : clients_) client->leave(random.percent(50));
}

void Round::look() {
  for (const auto& client : clients_) client->check_progress(origin_->busy() != 0, kHangSeconds);
  if (tunnels_) tunnels_->check_progress(kHangSeconds);
}

// Nobody begins anything: things that are left when all is answered are checked.
void Round::rest() {
  if (host_ == nullptr || draining_ || other_rules_wait_ || ring_.paused) return;
  resting_ = ring_.paused = true;
  rest_since_ = now();
}

void Round::end_rest() {
  if (!draining_ && !other_rules_wait_ && !host_->look_at_rest()) {
    // A fetch that nobody waits for any more goes on for a while, and ends.
    if (now() - rest_since_ > kHangSeconds) report("held", "a fetch that does not end");
    return;
  }
  if (!draining_ && !other_rules_wait_) {
    world_.count("looks at rest");
    ring_.paused = false;
  }
  resting_ = false;
}

// The end of a proxy: after a drain, or of the round.
void Round::finish() {
  system_.set_descriptors_max(SIZE_MAX);
  if (published_) {
    host_->look_at_resident();
    hours_->save(*host_);
  }
  look_at_purged();
  host_->count_disk([this](const char* what, std::uint64_t count) { world_.count(what, count); });
  const Counted counted{.counts = host_->counted(),
                        .traffic = system_.traffic() - traffic_before_,
                        .is_reverse = plan_.direction == Direction::kReverse,
                        .is_plain = !tls_,
                        .has_http2 = ring_.http2 != 0,
                        .has_http2_origins = settings_.origin_http2,
                        .has_tunnels = tunnels_.has_value(),
                        .has_breaks = world_.last_break >= host_->started(),
                        .has_rules = rules_.has_value(),
                        .answered = std::exchange(world_.answered, {})};
  traffic_before_ = system_.traffic();
  host_->look_for_leaks();
  result_.decisions += host_->decisions();
  host_.reset();
  const auto logged = accounts_ ? std::optional(accounts_->settle()) : std::nullopt;
  compare_counts(counted, logged ? &*logged : nullptr,
                 [this](const std::string& what) { report("accounts", what); });
  world_.last_ending = now();
  world_.ending_since = std::numeric_limits<double>::infinity();
}

RoundResult Round::run() {
  const double started = now();
  start();
  for (std::uint32_t i = 0; i < plan_.clients; ++i) {
    clients_.push_back(proxyfuzz::make_client(ring_, i));
  }
  if (comes_by_tls()) intruders_.emplace(ring_);
  schedule_happenings();
  Random ending(plan_.seed, 'q', 1);
  const bool ends_at_once = has(Feature::kMisbehave) && ending.percent(50);
  while (!stopped_ && (ring_.requests_left > 0 || ring_.active > 0 || draining_)) {
    if (!system_.step()) report("system", "nothing is to come, and clients wait");
    if (ends_at_once && ring_.requests_left == 0 && ring_.active > 0) all_leave(ending);
    if (draining_ && host_->has_ended()) {
      draining_ = false;
      finish();
      start();
      purges_->purged().ask_again();
      ring_.paused = other_rules_wait_;
    }
    if (system_.steps() % kStepsToLook == 0 && host_ != nullptr) {
      host_->look_at_held();
      look_at_purged();
      coverage_.look(host_->proxy());
    }
    if (system_.take_blocked() && host_ != nullptr) host_->look_at_bodiless();
    if (!tries_.empty() && host_ != nullptr) {
      tries_.look(host_->proxy(), [this](const std::string& what) { report("held", what); });
    }
    if (resting_ && ring_.active == 0) end_rest();
    if (other_rules_wait_ && ring_.active == 0 && !draining_) take_other_rules();
    if (draining_ && now() - drain_since_ > kDrainSeconds) {
      report("drain", "it does not end:\n" + host_->describe());
    }
    if (system_.steps() > kStepsWithoutEnd) report("system", "it does not end");
  }
  if (!stopped_) {
    drain_since_ = world_.last_ending = now();
    host_->drain();
    while (!stopped_ && !host_->has_ended() && now() - drain_since_ < kDrainSeconds) {
      if (!system_.step()) break;
    }
    host_->has_ended() ? finish() : report("drain", "the last does not end:\n" + host_->describe());
  }
  ring_.on_leave = {};
  clients_.clear();
  intruders_.reset();
  tunnels_.reset();
  origin_.reset();
  host_.reset();
  result_.requests = plan_.requests - ring_.requests_left;
  result_.digest = system_.digest();
  result_.steps = system_.steps();
  result_.simulated_seconds = now() - started;
  coverage_.tell([this](const auto& name, std::uint64_t count) { world_.count(name, count); });
  result_.counters = world_.counters();
  return result_;
}

}  // namespace

RoundResult run_round(const Plan& plan) { return Round(plan).run(); }

}  // namespace encore::simulate
