#include "proxy/process/listeners.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "proxy/net/listener.h"
#include "proxy/observe/log.h"
#include "proxy/settings/names.h"

namespace encore::server {
namespace {

// The first ones are logged when they serve.
void tell_of_changes(const Listeners::Plan& before, const Listeners::Plan& after) {
  if (before.empty()) return;
  const auto tell = [](const char* what, const Listeners::Plan& of, const Listeners::Plan& other) {
    for (const Listeners::Entry& entry : of) {
      const bool both = std::ranges::any_of(
          other, [&](const Listeners::Entry& each) { return each.id == entry.id; });
      if (both) continue;
      log::info("{} {}", what, entry.file ? entry.where.text() : entry.bound.to_string());
    }
  };
  tell("listening on", after, before);
  tell("no longer listening on", before, after);
}

// True if who reached `before` reaches `after` as well: all addresses of the machine with its port.
bool covers(const Listeners::Entry& after, const Listeners::Entry& before) {
  return after.file == nullptr && before.file == nullptr && after.bound.is_unspecified() &&
         after.bound.port() == before.bound.port() && (after.bound.is_v6() || before.bound.is_v4());
}

std::vector<std::uint64_t> succeeded_by(const Listeners::Entry& after,
                                        const Listeners::Plan& present,
                                        const Listeners::Plan& plan) {
  std::vector<std::uint64_t> succeeds;
  for (const Listeners::Entry& before : present) {
    const bool stays = std::ranges::any_of(
        plan, [&](const Listeners::Entry& each) { return each.id == before.id; });
    if (!stays && covers(after, before)) succeeds.push_back(before.id);
  }
  return succeeds;
}

}  // namespace

// True if a listener of ours has it, on whatever address: one of the present ones, or one that some
// worker has not closed yet.
bool Listeners::has_port(std::uint16_t port) {
  std::erase_if(leaving_, [](const Leaving& each) { return each.closing.expired(); });
  return std::ranges::count(leaving_, port, &Leaving::port) != 0 ||
         std::ranges::any_of(present_, [port](const Entry& entry) {
           return entry.file == nullptr && entry.bound.port() == port;
         });
}

// Returns what the workers keep until they have closed those of the present that `plan` is without.
std::shared_ptr<const void> Listeners::note_leaving(const Plan& plan) {
  std::shared_ptr<const void> closing;
  for (const Entry& before : present_) {
    if (before.file != nullptr || std::ranges::count(plan, before.id, &Entry::id) != 0) continue;
    if (closing == nullptr) closing = std::make_shared<const char>();
    leaving_.push_back({.port = before.bound.port(), .closing = closing});
  }
  return closing;
}

Result<Listeners::Entry> Listeners::open(const config::Listen& listen) {
  Entry entry{.id = ++ids_, .where = listen.address, .mode = listen.mode};
  entry.socket_mode = *listen.socket_mode;
  if (!listen.address->socket.empty()) {
    auto opened = net::open_unix_listening(listen.address->socket, *listen.socket_mode);
    if (!opened) return std::unexpected(opened.error());
    entry.file = std::make_shared<net::SocketFile>(std::move(opened->file));
    for (std::size_t i = 0; i + 1 < workers_; ++i) {
      entry.sockets.push_back(net::duplicate(opened->socket));
      if (!entry.sockets.back()) {
        return fail("cannot listen on " + listen.address.text() + ": " +
                    std::generic_category().message(errno));
      }
    }
    entry.sockets.push_back(std::move(opened->socket));
    return entry;
  }
  entry.bound = to_address(*listen.address);
  // If our own have the port it is ours to share: another user is refused it by the system.
  if (!has_port(entry.bound.port())) {
    if (auto unused = net::Listener::check_unused(entry.bound); !unused) {
      return std::unexpected(unused.error());
    }
  }
  for (std::size_t i = 0; i < workers_; ++i) {
    auto socket = net::open_listening(entry.bound);
    if (!socket) return std::unexpected(socket.error());
    // Port 0: all workers take the port that the first was given.
    entry.bound = net::listening_address(*socket);
    entry.sockets.push_back(std::move(*socket));
  }
  return entry;
}

Result<Listeners::Plan> Listeners::plan(const config::Config& config) {
  Plan plan;
  std::vector<bool> stays(present_.size());
  for (const config::Listen& listen : config.listen) {
    std::size_t found = 0;
    while (found < present_.size() &&
           (stays[found] || !(present_[found].where == listen.address))) {
      ++found;
    }
    if (found == present_.size()) {
      auto opened = open(listen);
      if (!opened) return std::unexpected(opened.error());
      plan.push_back(std::move(*opened));
      continue;
    }
    stays[found] = true;
    const Entry& kept = present_[found];
    plan.push_back({.id = kept.id,
                    .socket_mode = *listen.socket_mode,
                    .where = kept.where,
                    .mode = listen.mode,
                    .bound = kept.bound,
                    .file = kept.file,
                    .sockets = {}});
  }
  return plan;
}

std::vector<net::Address> Listeners::addresses(const Plan& plan) {
  std::vector<net::Address> addresses;
  for (const Entry& entry : plan) {
    if (entry.file == nullptr) addresses.push_back(entry.bound);
  }
  return addresses;
}

std::vector<std::vector<ListenerSeat>> Listeners::adopt(Plan plan, const TlsListeners& tls,
                                                        const SeriesTable<ListenerCounts>& counts) {
  std::vector<std::vector<ListenerSeat>> seats(workers_);
  tell_of_changes(present_, plan);
  const auto closing = note_leaving(plan);
  for (std::size_t index = 0; index < plan.size(); ++index) {
    Entry& entry = plan[index];
    const auto succeeds = succeeded_by(entry, present_, plan);
    for (std::size_t worker = 0; worker < workers_; ++worker) {
      ListenerSeat seat{.id = entry.id,
                        .mode = entry.mode,
                        .index = index,
                        .name = entry.where.text(),
                        .tls = tls.of(index),
                        .socket = {},
                        .succeeds = succeeds,
                        .counts = part_of(counts.of(entry.where.text()), worker),
                        .closing = closing};
      if (!entry.sockets.empty()) seat.socket = std::move(entry.sockets[worker]);
      seats[worker].push_back(std::move(seat));
    }
    if (entry.file != nullptr) {
      if (auto set = entry.file->set_mode(entry.socket_mode); !set) {
        log::error("{}", set.error().message);
      }
    }
    entry.sockets.clear();
  }
  present_ = std::move(plan);
  return seats;
}

}  // namespace encore::server
