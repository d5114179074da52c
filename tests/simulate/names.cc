#include "tests/simulate/names.h"

#include <string>

#include "proxy/net/loop.h"
#include "proxy/net/resolver.h"
#include "proxy/net/timer.h"
#include "tests/simulate/system.h"

namespace encore::simulate {

double Names::fail = 0;

namespace {

using net::Address;
using net::Resolver;

constexpr std::int64_t kAnswerMicroseconds = 500;
constexpr std::int64_t kSlowMicroseconds = 40'000;

std::vector<Address> addresses_of(const Resolver::Name& name) {
  if (const auto numeric = Address::parse_ip(name.host, name.port)) return {*numeric};
  std::vector<Address> out;
  if (name.host == "many.test") {
    out.push_back(*Address::parse_ip("198.51.100.1", name.port));  // no route
    out.push_back(*Address::parse_ip("192.0.2.1", name.port));     // no answer
  }
  out.push_back(*Address::parse_ip("127.0.0.1", name.port));
  return out;
}

class Question final : public Resolver::Query {
 public:
  Question(net::Loop& loop, const Resolver::Name& name, Resolver::OnDone on_done)
      : addresses_(addresses_of(name)),
        host_(name.host),
        on_done_(std::move(on_done)),
        timer_(loop, [this] { answer(); }) {
    std::int64_t microseconds = 0;
    System& system = *System::current();
    if (!Address::parse_ip(name.host, name.port)) {
      fails_ = Random(system.random()).percent(Names::fail);
      const bool slow = host_ == "slow.test";
      microseconds = static_cast<std::int64_t>(
          system.random() %
          static_cast<std::uint64_t>(slow ? kSlowMicroseconds : kAnswerMicroseconds));
    }
    timer_.start(std::chrono::microseconds(microseconds));
  }

 private:
  void answer() {
    System& system = *System::current();
    Resolver::OnDone on_done = std::move(on_done_);
    if (!fails_) return on_done(net::Resolved{addresses_, std::chrono::seconds(1)});
    if (system.on_trouble) system.on_trouble(System::NetworkFault::kShort);
    const auto outcome = Random(system.random())
                             .pick({net::ResolveOutcome::kNotFound, net::ResolveOutcome::kTimeout,
                                    net::ResolveOutcome::kRefused});
    on_done(std::unexpected(net::ResolveFailure{outcome, host_ + ": as the seed wants it"}));
  }

  std::vector<Address> addresses_;
  std::string host_;
  bool fails_ = false;
  Resolver::OnDone on_done_;
  net::Timer timer_;
};

class SimulatedResolver final : public Resolver {
 public:
  explicit SimulatedResolver(net::Loop& loop) : loop_(loop) {}
  std::unique_ptr<Query> resolve(const Name& name, OnDone on_done) override {
    return std::make_unique<Question>(loop_, name, std::move(on_done));
  }
  Result<void> set_options(const Options&) override { return {}; }

 private:
  net::Loop& loop_;
};

}  // namespace

// Resolver::create as the linker knows it: the real one and what replaces it.
#define ENCORE_RESOLVER_CREATE \
  "_ZN6encore3net8Resolver6createERNS0_4LoopERKNS1_7OptionsESt8functionIFvNS0_12ResolveEventEEE"
Result<std::unique_ptr<Resolver>> real_create(
    net::Loop& loop, const Resolver::Options& options,
    Resolver::OnEvent on_event) asm("__real_" ENCORE_RESOLVER_CREATE);

Result<std::unique_ptr<Resolver>> wrapped_create(
    net::Loop& loop, const Resolver::Options& options,
    Resolver::OnEvent on_event) asm("__wrap_" ENCORE_RESOLVER_CREATE);

Result<std::unique_ptr<Resolver>> wrapped_create(net::Loop& loop, const Resolver::Options& options,
                                                 Resolver::OnEvent on_event) {
  if (System::current() == nullptr) return real_create(loop, options, std::move(on_event));
  return std::unique_ptr<Resolver>(new SimulatedResolver(loop));
}

}  // namespace encore::simulate
