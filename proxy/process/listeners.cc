#include "proxy/process/listeners.h"

#include <sys/socket.h>

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

// True if others may listen on its address next to it.
bool shares_port(const net::Socket& socket) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &value, &size) == 0 && value != 0;
}

// One queue, from which all workers accept.
Result<std::vector<std::vector<net::Socket>>> share_socket(net::Socket socket, std::size_t workers,
                                                           const config::EndpointText& where) {
  std::vector<std::vector<net::Socket>> shares(workers);
  for (std::size_t i = 0; i + 1 < workers; ++i) {
    shares[i].push_back(net::duplicate(socket));
    if (!shares[i].back()) {
      return fail("cannot listen on " + where.text() + ": " +
                  std::generic_category().message(errno));
    }
  }
  shares.back().push_back(std::move(socket));
  return shares;
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

Result<Listeners::Entry> Listeners::open_unix(Entry entry, const config::Listen& listen) {
  auto opened = net::open_unix_listening(listen.address->socket, *listen.socket_mode);
  if (!opened) return std::unexpected(opened.error());
  entry.file = std::make_shared<net::SocketFile>(std::move(opened->file));
  auto shares = share_socket(std::move(opened->socket), workers_, entry.where);
  if (!shares) return std::unexpected(shares.error());
  entry.sockets = std::move(*shares);
  return entry;
}

// Each socket has a queue of its own, with clients in it: all of them get a worker. A worker that
// gets none waits for complete(): a socket that is opened now would be closed, with the clients in
// its queue, where the other process goes on.
Result<Listeners::Entry> Listeners::take_inherited(Entry entry, Inherited inherited) {
  if (!entry.where->socket.empty()) {
    auto file = net::SocketFile::of(entry.where->socket);
    if (!file) return std::unexpected(file.error());
    entry.file = std::make_shared<net::SocketFile>(std::move(*file));
    auto shares = share_socket(std::move(inherited.sockets.front()), workers_, entry.where);
    if (!shares) return std::unexpected(shares.error());
    entry.sockets = std::move(*shares);
    return entry;
  }
  entry.bound = net::listening_address(inherited.sockets.front());
  entry.sockets.resize(workers_);
  for (std::size_t i = 0; i < inherited.sockets.size(); ++i) {
    entry.sockets[i % workers_].push_back(std::move(inherited.sockets[i]));
  }
  const net::Socket& first = entry.sockets.front().front();
  const bool is_shared = shares_port(first);
  for (std::size_t i = inherited.sockets.size(); i < workers_; ++i) {
    if (!is_shared) {
      // A service manager's, which nobody else may bind.
      entry.sockets[i].push_back(net::duplicate(first));
      continue;
    }
    lacking_.push_back({.id = entry.id, .bound = entry.bound, .worker = i});
  }
  return entry;
}

std::vector<std::vector<Listeners::Added>> Listeners::complete() {
  std::vector<std::vector<Added>> added(workers_);
  for (const Lacking& lacking : std::exchange(lacking_, {})) {
    auto socket = net::open_listening(lacking.bound);
    if (!socket) {
      log::warn("worker {} accepts no connections: {}", lacking.worker, socket.error().message);
      continue;
    }
    added[lacking.worker].push_back({.id = lacking.id, .socket = std::move(*socket)});
  }
  for (const Inherited& each : inherited_) {
    log::info("no longer listening on {}", each.where);
    constexpr std::string_view kUnix = "unix:";
    if (!each.where.starts_with(kUnix)) continue;
    // The file goes with the object.
    if (auto file = net::SocketFile::of(each.where.substr(kUnix.size()))) file->own();
  }
  for (const Entry& entry : present_) {
    if (entry.file != nullptr) entry.file->own();
  }
  inherited_.clear();
  return added;
}

void Listeners::leave_files() {
  for (const Entry& entry : present_) {
    if (entry.file != nullptr) entry.file->leave();
  }
}

Result<Listeners::Entry> Listeners::open(const config::Listen& listen) {
  Entry entry{.id = ++ids_, .where = listen.address, .mode = listen.mode};
  entry.socket_mode = *listen.socket_mode;
  const auto inherited = std::ranges::find(inherited_, listen.address.text(), &Inherited::where);
  if (inherited != inherited_.end()) {
    Inherited taken = std::move(*inherited);
    inherited_.erase(inherited);
    return take_inherited(std::move(entry), std::move(taken));
  }
  if (!listen.address->socket.empty()) return open_unix(std::move(entry), listen);
  entry.bound = to_address(*listen.address);
  // If our own have the port it is ours to share: another user is refused it by the system.
  if (!has_port(entry.bound.port())) {
    if (auto unused = net::Listener::check_unused(entry.bound); !unused) {
      return std::unexpected(unused.error());
    }
  }
  entry.sockets.resize(workers_);
  for (std::size_t i = 0; i < workers_; ++i) {
    auto socket = net::open_listening(entry.bound);
    if (!socket) return std::unexpected(socket.error());
    // Port 0: all workers take the port that the first was given.
    entry.bound = net::listening_address(*socket);
    entry.sockets[i].push_back(std::move(*socket));
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

std::vector<std::vector<WorkerListener>> Listeners::adopt(
    Plan plan, const TlsListeners& tls, const SeriesTable<ListenerCounts>& counts) {
  std::vector<std::vector<WorkerListener>> seats(workers_);
  tell_of_changes(present_, plan);
  const auto closing = note_leaving(plan);
  for (std::size_t index = 0; index < plan.size(); ++index) {
    Entry& entry = plan[index];
    const auto succeeds = succeeded_by(entry, present_, plan);
    for (std::size_t worker = 0; worker < workers_; ++worker) {
      WorkerListener seat{.id = entry.id,
                          .mode = entry.mode,
                          .index = index,
                          .name = entry.where.text(),
                          .tls = tls.of(index),
                          .is_new = false,
                          .sockets = {},
                          .succeeds = succeeds,
                          .counts = part_of(counts.of(entry.where.text()), worker),
                          .closing = closing};
      seat.is_new = !entry.sockets.empty();
      if (seat.is_new) seat.sockets = std::move(entry.sockets[worker]);
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
