// System: what is called on sockets.
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tests/simulate/system.h"

namespace encore::simulate {
namespace {

constexpr std::int64_t kConnectTimeout = 127'000'000'000;  // tcp(7): six questions
// Nobody is there: RFC 5737's first is never reached, the second has no route.
constexpr std::uint32_t kSilentNetwork = 0xc0000200;       // 192.0.2.0/24
constexpr std::uint32_t kUnreachableNetwork = 0xc6336400;  // 198.51.100.0/24

void write_address(std::uint32_t ip, std::uint16_t port, sockaddr* to, socklen_t* size) {
  if (to == nullptr || size == nullptr) return;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(ip);
  std::memcpy(to, &address, std::min<std::size_t>(*size, sizeof address));
  *size = sizeof address;
}

}  // namespace

bool System::is_interrupted(const Descriptor& at) {
  return at.side == Side::kProxy && adversity_.interrupt != 0 &&
         random_.percent(adversity_.interrupt);
}

int System::socket(Side side, int family, int type) {
  if (family != AF_INET || (type & SOCK_STREAM) == 0) return fail(EAFNOSUPPORT);
  if (!has_descriptor(side)) return fail(EMFILE);
  return make(side, Kind::kFresh);
}

int System::bind(int descriptor, const sockaddr* address, socklen_t size) {
  Descriptor* at = checked(descriptor, "bind");
  if (at == nullptr || size < sizeof(sockaddr_in)) return fail(EBADF);
  sockaddr_in in;
  std::memcpy(&in, address, sizeof in);
  Port port{.ip = ntohl(in.sin_addr.s_addr), .port = ntohs(in.sin_port)};
  if (port.port == 0) port.port = next_port_++;
  for (const int other : listeners_) {
    const Descriptor& listener = *find(other);
    if (listener.address == port && !(listener.shares_port && at->shares_port)) {
      return fail(EADDRINUSE);
    }
  }
  at->address = port;
  at->has_address = true;
  return 0;
}

int System::listen(int descriptor, int backlog) {
  Descriptor* at = checked(descriptor, "listen");
  if (at == nullptr) return fail(EBADF);
  at->kind = Kind::kListener;
  at->listener.waiting_max = static_cast<std::size_t>(std::max(backlog, 1));
  listeners_.push_back(descriptor);
  return 0;
}

int System::connect(int descriptor, const sockaddr* address, socklen_t size) {
  Descriptor* at = checked(descriptor, "connect");
  if (at == nullptr || size < sizeof(sockaddr_in)) return fail(EBADF);
  sockaddr_in in;
  std::memcpy(&in, address, sizeof in);
  if (in.sin_family != AF_INET) return fail(EAFNOSUPPORT);
  if (at->kind != Kind::kFresh) return fail(EISCONN);
  const Port to{.ip = ntohl(in.sin_addr.s_addr), .port = ntohs(in.sin_port)};
  if ((to.ip & 0xffffff00) == kUnreachableNetwork) return fail(ENETUNREACH);
  at->kind = Kind::kConnecting;
  at->address = to;
  ++at->generation;
  std::int64_t delay = static_cast<std::int64_t>(random_.below(20'000));
  at->error = 0;
  if ((to.ip & 0xffffff00) == kSilentNetwork) {
    at->error = ETIMEDOUT;
    delay = kConnectTimeout;
  } else if (at->side == Side::kProxy && adversity_.refuse != 0 &&
             random_.percent(adversity_.refuse)) {
    at->error = random_.pick({ECONNREFUSED, EHOSTUNREACH, ETIMEDOUT, ECONNRESET});
    if (at->error == ETIMEDOUT) delay = kConnectTimeout;
    // If the name has another address, at which nobody is, that one is waited for.
    if (on_trouble) on_trouble(NetworkFault::kLong);
  }
  if (adversity_.latency_max != 0) {
    delay += static_cast<std::int64_t>(
        random_.below(static_cast<std::uint64_t>(adversity_.latency_max) + 1));
  }
  push(What::kConnect, now_ + delay, static_cast<std::uint32_t>(descriptor - kFirstDescriptor),
       at->generation);
  return fail(EINPROGRESS);
}

int System::accept(Side side, int descriptor, sockaddr* peer, socklen_t* size) {
  Descriptor* at = checked(descriptor, "accept");
  if (at == nullptr) return fail(EBADF);
  if (at->kind != Kind::kListener) return fail(EINVAL);
  if (at->listener.waiting.empty()) return fail(EAGAIN);
  if (is_interrupted(*at)) return fail(random_.pick({EINTR, EAGAIN, ECONNABORTED}));
  if (!has_descriptor(side)) return fail(EMFILE);
  const std::uint32_t number = at->listener.waiting.front();
  at->listener.waiting.erase(at->listener.waiting.begin());
  const int made = make(side, Kind::kStream);
  Descriptor& accepted = *find(made);
  Link& link = *links_[number];
  accepted.link = number;
  accepted.end = 1;
  accepted.address = link.to;
  link.ends[1].waits = false;
  link.ends[1].descriptor = made;
  link.ends[1].is_proxys = side == Side::kProxy;
  write_address(link.from.ip, link.from.port, peer, size);
  return made;
}

int System::take_error(Descriptor& at) {
  int& error = at.kind == Kind::kStream ? links_[at.link]->ends[at.end].error : at.error;
  return std::exchange(error, 0);
}

ssize_t System::recv(int descriptor, void* bytes, std::size_t size, int flags) {
  Descriptor* at = checked(descriptor, "recv");
  if (at == nullptr) return fail(EBADF);
  if (at->kind == Kind::kConnecting) return fail(EAGAIN);
  if (at->kind == Kind::kFailed) {
    const int error = take_error(*at);
    return error != 0 ? fail(error) : 0;
  }
  if (at->kind != Kind::kStream) return fail(ENOTCONN);
  End& end = links_[at->link]->ends[at->end];
  if (is_interrupted(*at)) return fail(random_.percent(50) ? EINTR : EAGAIN);
  end.read_all = end.read_all || end.in.size() == end.arrived;
  if (end.arrived == 0) {
    if (end.fin_came || at->reads_no_more) return 0;
    if (end.error != 0) return fail(take_error(*at));
    if (end.dead) return 0;
    return fail(EAGAIN);
  }
  const std::size_t taken = std::min(size, end.arrived);
  if ((flags & MSG_PEEK) != 0) {
    end.in.peek(bytes, taken);
    return static_cast<ssize_t>(taken);
  }
  end.in.pop(bytes, taken);
  if (at->side == Side::kProxy) {
    (links_[at->link]->to_origin ? traffic_.from_origins : traffic_.from_clients) += taken;
  }
  end.arrived -= taken;
  note_move(end);
  // Bytes that found no space may come now.
  if (end.in.size() != end.arrived) schedule_arrival(at->link, at->end);
  return static_cast<ssize_t>(taken);
}

ssize_t System::send(int descriptor, std::span<const iovec> parts) {
  Descriptor* at = checked(descriptor, "send");
  if (at == nullptr) return fail(EBADF);
  if (at->kind == Kind::kConnecting) return fail(EAGAIN);
  if (at->kind != Kind::kStream) {
    const int error = take_error(*at);
    return fail(error != 0 ? error : EPIPE);
  }
  Link& link = *links_[at->link];
  End& own = link.ends[at->end];
  End& other = link.ends[1 - at->end];
  if (own.error != 0) return fail(take_error(*at));
  if (own.dead || at->sends_no_more) return fail(EPIPE);
  if (is_interrupted(*at)) return fail(EINTR);
  const std::size_t transit = other.in.size() - other.arrived;
  std::size_t room = other.transit_max > transit ? other.transit_max - transit : 0;
  const bool is_to_client = at->side == Side::kProxy && !link.to_origin;
  is_client_blocked_ = is_client_blocked_ || (is_to_client && room == 0);
  if (room == 0) return fail(EAGAIN);
  if (at->side == Side::kProxy && adversity_.short_write != 0 &&
      random_.percent(adversity_.short_write)) {
    // If there is little to send, such as a head alone, half of these sends take a part of it.
    std::size_t size = 0;
    for (const iovec& part : parts) size += part.iov_len;
    const std::size_t most = random_.percent(50) ? std::min<std::size_t>(size, 3000) : 3000;
    room = random_.between(1, std::min(room, std::max<std::size_t>(most, 1)));
  }
  if (other.in.size() == 0) other.other_knew = own.read_all;
  // Bytes of the other end are on their way: it knew nothing of these when it sent them.
  if (own.in.size() != 0) own.other_knew = false;
  other.read_all = false;
  std::size_t sent = 0;
  for (const iovec& part : parts) {
    const std::size_t size = std::min(part.iov_len, room - sent);
    other.in.push(part.iov_base, size);
    sent += size;
    if (sent == room) break;
  }
  is_client_blocked_ = is_client_blocked_ || (is_to_client && sent == room);
  if (at->side == Side::kProxy) {
    (link.to_origin ? traffic_.to_origins : traffic_.to_clients) += sent;
  }
  note_move(own);
  schedule_arrival(at->link, 1 - at->end);
  return static_cast<ssize_t>(sent);
}

int System::shutdown(int descriptor, int how) {
  Descriptor* at = checked(descriptor, "shutdown");
  if (at == nullptr) return fail(EBADF);
  if (at->kind != Kind::kStream) return fail(ENOTCONN);
  Link& link = *links_[at->link];
  if (link.ends[at->end].dead || is_over(link)) return fail(ENOTCONN);
  if (how == SHUT_RD || how == SHUT_RDWR) at->reads_no_more = true;
  if (how == SHUT_WR || how == SHUT_RDWR) {
    at->sends_no_more = true;
    note_ending(link, at->end);
    end_of(at->link, at->end, false);
  }
  tell(descriptor);
  return 0;
}

int System::close(int descriptor) {
  Descriptor* at = checked(descriptor, "close");
  if (at == nullptr) return fail(EBADF);
  if (!at->watches.empty()) {
    fault("a descriptor is closed while a loop waits for it");
    while (!at->watches.empty()) at->watches.back()->poller->remove(*at->watches.back());
  }
  if (at->kind == Kind::kListener) close_listener(*at);
  const bool is_stream = at->kind == Kind::kStream;
  const std::uint32_t link = at->link;
  if (is_stream) {
    End& own = links_[link]->ends[at->end];
    note_ending(*links_[link], at->end);
    own.closed = true;
    own.descriptor = -1;
    // tcp_close: with bytes unread the other side shall know that they were lost.
    const bool reset = at->reset_on_close || own.arrived != 0;
    end_of(link, at->end, reset && !is_over(*links_[link]));
  }
  at->kind = Kind::kFree;
  if (at->side == Side::kProxy) --proxy_descriptors_;
  free_descriptors_.push_back(static_cast<std::uint32_t>(descriptor - kFirstDescriptor));
  if (is_stream) free_if_unused(link);
  return 0;
}

int System::setsockopt(int descriptor, int level, int option, const void* value, socklen_t size) {
  Descriptor* at = checked(descriptor, "setsockopt");
  if (at == nullptr) return fail(EBADF);
  if (level == IPPROTO_TCP && option == TCP_NOTSENT_LOWAT && size >= sizeof(int)) {
    int bytes = 0;
    std::memcpy(&bytes, value, sizeof bytes);
    at->unsent_max = static_cast<std::size_t>(bytes);
    return 0;
  }
  if (level != SOL_SOCKET) return 0;
  if (option == SO_LINGER && size >= sizeof(linger)) {
    linger wanted;
    std::memcpy(&wanted, value, sizeof wanted);
    at->reset_on_close = wanted.l_onoff != 0 && wanted.l_linger == 0;
  }
  if (option == SO_REUSEPORT) at->shares_port = true;
  if (option == SO_RCVBUF) {
    int bytes = 0;
    std::memcpy(&bytes, value, sizeof bytes);
    at->receive_buffer = static_cast<std::size_t>(bytes);
  }
  return 0;
}

int System::getsockopt(int descriptor, int level, int option, void* value, socklen_t* size) {
  Descriptor* at = checked(descriptor, "getsockopt");
  if (at == nullptr) return fail(EBADF);
  if (level != SOL_SOCKET || option != SO_ERROR || *size < sizeof(int)) return fail(ENOPROTOOPT);
  const int error = take_error(*at);
  std::memcpy(value, &error, sizeof error);
  *size = sizeof error;
  return 0;
}

int System::getsockname(int descriptor, sockaddr* address, socklen_t* size) {
  Descriptor* at = checked(descriptor, "getsockname");
  if (at == nullptr) return fail(EBADF);
  Port port = at->address;
  if (at->kind == Kind::kStream && at->end == 0) port = links_[at->link]->from;
  write_address(port.ip, port.port, address, size);
  return 0;
}

int System::ioctl(int descriptor, unsigned long request, int* value) {
  Descriptor* at = checked(descriptor, "ioctl");
  if (at == nullptr) return fail(EBADF);
  if (at->kind != Kind::kStream) return fail(EINVAL);
  const Link& link = *links_[at->link];
  const End& other = link.ends[1 - at->end];
  if (request == FIONREAD) {
    *value = static_cast<int>(link.ends[at->end].arrived);
  } else if (request == SIOCOUTQ) {
    *value = link.ends[at->end].dead ? 0 : static_cast<int>(other.in.size() - other.arrived);
  } else if (request == SIOCOUTQNSD) {
    *value = link.ends[at->end].dead ? 0 : static_cast<int>(unsent_to(other));
  } else {
    return fail(EINVAL);
  }
  return 0;
}

bool System::was_broken(int descriptor) const {
  const Descriptor* at = find(descriptor);
  return at != nullptr && at->kind == Kind::kStream && links_[at->link]->ends[at->end].broken;
}

bool System::was_heard(int descriptor) const {
  const Descriptor* at = find(descriptor);
  if (at == nullptr || at->kind != Kind::kStream) return false;
  const Link& link = *links_[at->link];
  return !link.ends[at->end].unheard && link.ends[1 - at->end].in.size() == 0;
}

bool System::had_read_all(int descriptor) const {
  const Descriptor* at = find(descriptor);
  return at != nullptr && at->kind == Kind::kStream && links_[at->link]->ends[at->end].other_knew;
}

std::span<const System::Ending> System::other_endings(int descriptor) const {
  const Descriptor* at = find(descriptor);
  if (at == nullptr || at->kind != Kind::kStream) return {};
  return links_[at->link]->ends[1 - at->end].endings;
}

std::int64_t System::other_moved_before(int descriptor, std::uint64_t order) const {
  const Descriptor* at = find(descriptor);
  if (at == nullptr || at->kind != Kind::kStream) return now_;
  const std::vector<Move>& moves = links_[at->link]->ends[1 - at->end].moves;
  if (moves.empty()) return now_;
  // The first is in front of every ending.
  const auto next = std::ranges::lower_bound(moves, order, {}, &Move::order);
  return next == moves.begin() ? moves.front().at : std::prev(next)->at;
}

// Notes moves of the proxy's ends: nobody asks about others.
void System::note_move(End& own) {
  if (!own.is_proxys) return;
  if (own.moves.empty() || own.moves.back().at != now_) own.moves.push_back({++order_, now_});
}

void System::note_ending(Link& link, std::size_t which) {
  if (!link.ends[which].is_proxys) return;
  const End& other = link.ends[1 - which];
  link.ends[which].endings.push_back(
      {.order = ++order_, .at = now_, .undelivered = other.in.size() - other.arrived});
}

int System::choose_listener(const Port& to) {
  std::array<int, 64> found;
  std::size_t count = 0;
  for (const int each : listeners_) {
    const Descriptor& listener = *find(each);
    if (listener.address == to && count < found.size()) found[count++] = each;
  }
  return count == 0 ? -1 : found[random_.below(count)];
}

void System::close_listener(Descriptor& at) {
  std::erase_if(listeners_, [&](int each) { return find(each) == &at; });
  // Nobody will accept them: they learn it by a reset.
  for (const std::uint32_t link : at.listener.waiting) {
    links_[link]->ends[1].closed = true;
    end_of(link, 1, true);
    free_if_unused(link);
  }
  at.listener.waiting.clear();
}

}  // namespace encore::simulate
