#include "proxy/fleet/fleet.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::fleet {
namespace {

// A backlog of some hundred thousand purges.
constexpr Nanoseconds kReadingMax = std::chrono::seconds(60);
// After a process was replaced: two waits of a read.
constexpr Nanoseconds kReadingOn = std::chrono::seconds(5);

}  // namespace

Fleet::Fleet(net::Loop& loop, FleetOptions options, FleetHost host)
    : loop_(loop),
      options_(std::move(options)),
      host_(std::move(host)),
      state_(options_),
      self_(std::make_shared<Fleet*>(this)),
      timer_(loop, [this] { expire(); }),
      end_of_reading_(loop,
                      [this] {
                        stop_reading_.stop();
                        host_.stop();
                      }),
      follower_(options_, host_, state_, stop_reading_),
      publisher_(options_, host_, times_, state_, stop_,
                 {.on_published =
                      [this](std::uint64_t number, const StreamId& id) {
                        post([number, id](Fleet& fleet) {
                          fleet.confirmations_.published(number, id, fleet.loop_.now());
                          fleet.restart_timer();
                        });
                      },
                  .on_delayed =
                      [this](std::uint64_t number) {
                        post([number](Fleet& fleet) {
                          fleet.confirmations_.unpublished(number, false);
                          fleet.restart_timer();
                        });
                      },
                  .on_dropped =
                      [this] {
                        post([](Fleet& fleet) {
                          fleet.confirmations_.drop_unpublished();
                          fleet.restart_timer();
                        });
                      }}),
      listener_(
          options_, stop_,
          {.on_confirmed =
               [this](std::string node, const StreamId& position) {
                 state_.confirmed(std::move(node), position);
                 if (is_posted_.exchange(true)) return;
                 post([](Fleet& fleet) { fleet.take_confirmed(); });
               },
           .on_connected =
               [this] { post([](Fleet& fleet) { fleet.confirmations_.forget_positions(); }); }}),
      joining_(options_, host_, state_, stop_),
      giving_(options_, host_, state_, stop_) {
  times_.keep.store(options_.keep);
  times_.wait.store(options_.wait);
  times_.late.store(options_.late);
  threads_.emplace_back([this] { follower_.run(); });
  threads_.emplace_back([this] { publisher_.run(); });
  threads_.emplace_back([this] { listener_.run(); });
}

Fleet::~Fleet() {
  stop_.stop();
  stop_reading_.stop();
  host_.stop();
  state_.wake();
  for (std::thread& each : threads_) each.join();
  self_.reset();
}

void Fleet::post(std::move_only_function<void(Fleet&)> function) {
  loop_.post([fleet = std::weak_ptr<Fleet*>(self_), function = std::move(function)]() mutable {
    if (const auto alive = fleet.lock()) function(**alive);
  });
}

bool Fleet::wait_until_current() {
  return state_.wait_until_current(times_.wait.load(), kReadingMax);
}

void Fleet::publish(const server::PurgeOrder& order, Confirmations::Done done) {
  ENCORE_CHECK(!order.dry_run, "a dry run purges nothing");
  const std::uint64_t number = state_.next_number();
  PurgeEntry entry{.node = options_.node, .instance = options_.instance, .number = number};
  entry.order = order;
  entry.order.token.clear();
  auto fields = encode(entry);
  confirmations_.add(number,
                     {.present = state_.present(options_.node), .away = state_.away(options_.node)},
                     options_.node, loop_.now() + times_.wait.load(), std::move(done));
  // One that no entry can hold is as one too many.
  const bool is_taken =
      fields ? state_.add({.number = number, .fields = std::move(*fields), .is_soft = order.soft})
             : state_.drop(order.soft);
  if (is_taken) return;
  post([number](Fleet& fleet) { fleet.confirmations_.unpublished(number, true); });
}

void Fleet::take_confirmed() {
  is_posted_.store(false);
  for (const auto& [node, position] : state_.take_confirmed()) {
    confirmations_.confirmed(node, position);
  }
  restart_timer();
}

void Fleet::expire() {
  confirmations_.expire(loop_.now());
  restart_timer();
}

void Fleet::restart_timer() {
  unconfirmed_.store(confirmations_.missed());
  const auto next = confirmations_.next_end();
  if (!next) return timer_.cancel();
  timer_.start(std::max(*next - loop_.now(), Nanoseconds(0)));
}

void Fleet::serve() {
  threads_.emplace_back([this] { giving_.run(); });
  if (options_.filter != server::FleetFilter::State::kWanted) return;
  threads_.emplace_back([this] { joining_.run(); });
}

void Fleet::hand_over() {
  publisher_.end_presence();
  end_of_reading_.start(kReadingOn);
}

server::FleetReport Fleet::report() const {
  server::FleetReport report = state_.report(options_.node, times_.late.load());
  report.unconfirmed = unconfirmed_.load();
  return report;
}

}  // namespace encore::fleet
