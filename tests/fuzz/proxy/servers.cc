#include "tests/fuzz/proxy/servers.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>

namespace encore::proxyfuzz {

Servers::Servers(Loop& loop, World& world, Random& random, TlsEnds* tls)
    : loop_(loop), world_(world), tls_(tls), random_(world.seed(), 's', 0) {
  std::size_t count = 1;
  if (world.is_reverse()) count = random.pick<std::size_t>({1, 2, 3, 4});
  for (std::size_t i = 0; i < count; ++i) {
    servers_.push_back(std::make_unique<Origin>(loop, world, tls));
  }
  refuses_.assign(count, false);
  living_ = random.below(count);
  world.has_servers = count > 1;
}

Servers::~Servers() { stop(); }

std::size_t Servers::busy() const {
  std::size_t all = 0;
  for (const auto& server : servers_) all += server->busy();
  return all;
}

std::string Servers::text(Random& random) const {
  const auto text = [&random](std::initializer_list<const char*> of) {
    return "\"" + std::string(random.pick(of)) + "\"\n";
  };
  std::string out;
  if (world_.is_reverse()) {
    out += "[[origin]]\nservers = [";
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      out += (i == 0 ? "\"" : ", \"") + std::string(tls_ == nullptr ? "http" : "https") +
             "://127.0.0.1:" + std::to_string(servers_[i]->port());
      if (random.percent(20)) out += " weight=3";
      if (i != 0 && random.percent(20)) out += " backup";
      out += "\"";
    }
    out += "]\nbalance = " + text({"round-robin", "least-requests", "hash", "client"});
    if (servers_.size() > 1 && random.percent(50)) {
      out += "health_path = \"/health\"\nhealth_interval = \"200ms\"\nhealth_timeout = \"2s\"\n";
    }
    if (servers_.size() > 1 && random.percent(30)) out += "slow_start = \"500ms\"\n";
  }
  out += "[upstream]\nbuffer_requests = " + text({"0B", "0B", "1KiB", "64KiB"});
  if (tls_ != nullptr) out += "tls_ca_file = \"" + tls_->certificate_file() + "\"\n";
  if (servers_.size() > 1) {
    // As many as there can be to try: a server that is silent or ends a connection costs one each.
    out += "retries = 16\nfirst_byte = \"3s\"\nset_aside_max = \"1s\"\nset_aside = " +
           text({"0s", "50ms", "300ms"});
    out += "eject_after = " + std::to_string(random.pick({1, 1, 3})) + "\n";
    if (random.percent(40)) out += "connections_per_server = 24\n";
  }
  return out;
}

void Servers::start() {
  if (servers_.size() == 1) return;
  timer_ = loop_.after(0.001 * static_cast<double>(random_.between(20, 600)), [this] {
    timer_ = {};
    change();
    start();
  });
}

void Servers::stop() {
  loop_.cancel(timer_);
  for (std::size_t i = 0; i < servers_.size(); ++i) revive(i);
}

void Servers::revive(std::size_t index) {
  if (refuses_[index]) {
    if (::listen(servers_[index]->listener(), SOMAXCONN) != 0) {
      std::perror("listen");
      std::exit(2);
    }
    loop_.add(servers_[index]->listener(), *servers_[index], EPOLLIN);
  }
  refuses_[index] = false;
  servers_[index]->set_mood(Mood::kWell);
}

// Another server is in another state.
void Servers::change() {
  const std::size_t index = random_.below(servers_.size());
  if (index == living_) return;
  revive(index);
  const std::uint64_t kind = random_.below(100);
  if (kind < 40) return;
  world_.count("origin: a server has gone");
  if (kind < 60) {
    // It keeps its port, and nobody listens.
    refuses_[index] = true;
    loop_.remove(servers_[index]->listener());
    ::shutdown(servers_[index]->listener(), SHUT_RDWR);
    servers_[index]->set_mood(Mood::kResetting);
    return;
  }
  const Mood moods[] = {Mood::kResetting, Mood::kDying, Mood::kDying, Mood::kSilent};
  servers_[index]->set_mood(moods[(kind - 60) / 10]);
}

}  // namespace encore::proxyfuzz
