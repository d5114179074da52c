// System: connections, and what is on its way in them.
#include <algorithm>
#include <cerrno>

#include "tests/simulate/system.h"

namespace encore::simulate {
namespace {

constexpr std::uint32_t kLoopback = 0x7f000001;
// Bytes of one end's receive and the other's send buffer, as loopback has them.
constexpr std::size_t kBufferBytes = 2 << 20;
constexpr std::int64_t kHopMax = 15'000;

}  // namespace

std::size_t System::buffer_bytes() {
  if (adversity_.small_buffers == 0 || !random_.percent(adversity_.small_buffers)) {
    return kBufferBytes;
  }
  return random_.pick<std::size_t>({1200, 2304, 4608, 16384, 65536});
}

std::uint32_t System::make_link(const Descriptor& connecting, const Descriptor& listener) {
  if (free_links_.empty()) {
    free_links_.push_back(static_cast<std::uint32_t>(links_.size()));
    links_.push_back(std::make_unique<Link>(bytes_));
  }
  const std::uint32_t number = free_links_.back();
  free_links_.pop_back();
  const std::uint32_t generation = links_[number]->generation;
  links_[number] = std::make_unique<Link>(bytes_);
  Link& link = *links_[number];
  link.generation = generation;
  link.used = true;
  for (End& end : link.ends) {
    end.in_max = buffer_bytes();
    end.transit_max = buffer_bytes();
  }
  if (connecting.receive_buffer != 0) {
    link.ends[0].in_max = connecting.receive_buffer;
    // Else its sender's buffer has all that the client is slow to take.
    if (adversity_.small_buffers != 0 && random_.percent(70)) {
      link.ends[0].transit_max = random_.pick<std::size_t>({1200, 2304, 4608});
    }
  }
  link.ends[0].is_proxys = connecting.side == Side::kProxy;
  link.ends[1].is_proxys = listener.side == Side::kProxy;
  link.ends[1].waits = true;
  for (End& end : link.ends) note_move(end);
  link.to_origin = connecting.side == Side::kProxy;
  link.latency = 0;
  if (adversity_.latency_max != 0) {
    const auto most = static_cast<std::uint64_t>(adversity_.latency_max);
    // Squared: most are near.
    const std::uint64_t drawn = random_.below(1024);
    link.latency = static_cast<std::int64_t>(most * drawn / 1024 * drawn / 1024);
  }
  if (++next_port_ < 32768) next_port_ = 32768;
  link.from = {.ip = kLoopback, .port = next_port_};
  link.to = connecting.address;
  return number;
}

void System::finish_connect(int descriptor) {
  Descriptor& at = *find(descriptor);
  const int listening = at.error == 0 ? choose_listener(at.address) : -1;
  Descriptor* listener = listening < 0 ? nullptr : find(listening);
  if (listener == nullptr || listener->listener.waiting.size() >= listener->listener.waiting_max) {
    if (at.error == 0) at.error = ECONNREFUSED;
    at.kind = Kind::kFailed;
  } else {
    at.link = make_link(at, *listener);
    at.kind = Kind::kStream;
    at.end = 0;
    links_[at.link]->ends[0].descriptor = descriptor;
    listener->listener.waiting.push_back(at.link);
    tell(listening);
  }
  tell(descriptor);
}

// Schedules the next arrival at `end`, which comes soon.
void System::schedule_arrival(std::uint32_t number, std::size_t which) {
  Link& link = *links_[number];
  End& end = link.ends[which];
  if (end.due >= 0) return;
  end.due = now_ + link.latency + static_cast<std::int64_t>(random_.below(kHopMax));
  push(What::kArrive, end.due, static_cast<std::uint32_t>(2 * number + which), link.generation);
}

void System::arrive(std::uint32_t number, std::size_t which) {
  Link& link = *links_[number];
  End& end = link.ends[which];
  std::size_t moving = end.in.size() - end.arrived;
  if (end.dead) {
    end.in.drop_back(moving);  // sent before the sender learnt it
    return;
  }
  if (end.reset_sent) {
    arrive_reset(end);
    if (end.closed) free_if_unused(number);
    return;
  }
  if (moving != 0 && adversity_.reset != 0 && random_.percent(adversity_.reset)) {
    break_link(number);
    return;
  }
  if (end.closed) {
    // There is nobody: the sender learns so.
    end.in.clear();
    end.arrived = 0;
    if (moving != 0) {
      link.ends[1 - which].unheard = true;
      reset_other(number, which);
    } else if (end.fin_sent) {
      end.fin_came = true;
    }
    return;
  }
  const std::size_t room = end.in_max > end.arrived ? end.in_max - end.arrived : 0;
  bool all = moving <= room;
  moving = std::min(moving, room);
  if (moving > 1 && adversity_.split != 0 && random_.percent(adversity_.split)) {
    moving = random_.percent(50) ? random_.between(1, std::min<std::size_t>(moving, 200))
                                 : random_.between(1, moving);
    all = end.arrived + moving == end.in.size();
    if (!all) schedule_arrival(number, which);
  }
  end.arrived += moving;
  if (all && end.fin_sent) end.fin_came = true;
  if (end.descriptor >= 0) tell(end.descriptor);
  // Its sender has space again.
  const int sender = link.ends[1 - which].descriptor;
  if (sender >= 0 && moving != 0) tell(sender);
}

// Bytes that the sender still held are lost with a reset; those that it had been able to send come
// first. If the network has lost the connection, any part of these may be missing.
void System::arrive_reset(End& end) {
  const std::size_t moving = end.in.size() - end.arrived;
  const std::size_t room = end.in_max > end.arrived ? end.in_max - end.arrived : 0;
  const std::size_t lost = end.broken ? random_.below(moving + 1) : moving - std::min(moving, room);
  if (end.fin_sent && lost == 0 && !end.broken) end.fin_came = true;
  end.in.drop_back(lost);
  end.arrived = end.in.size();
  if (end.closed) {
    end.in.clear();
    end.arrived = 0;
  }
  end.dead = true;
  // tcp_reset: after an end it is a broken pipe.
  end.error = end.fin_came ? EPIPE : ECONNRESET;
  if (end.descriptor >= 0) tell(end.descriptor);
}

// The other end of `which` learns that nobody is here.
void System::reset_other(std::uint32_t number, std::size_t which) {
  End& other = links_[number]->ends[1 - which];
  if (other.dead || other.reset_sent || other.closed) return;
  other.reset_sent = true;
  other.due = -1;
  schedule_arrival(number, 1 - which);
}

// The network has lost it: both ends learn it, each in its time.
void System::break_link(std::uint32_t number) {
  Link& link = *links_[number];
  if (link.to_origin && on_trouble) on_trouble(NetworkFault::kShort);
  if (on_break) on_break();
  if (link.to_origin && on_origin_break) on_origin_break(link.ends[0].descriptor);
  for (std::size_t which = 0; which < 2; ++which) {
    End& end = link.ends[which];
    if (end.closed || end.dead) continue;
    end.broken = true;
    end.reset_sent = true;
    end.due = -1;
    schedule_arrival(number, which);
  }
}

// `which` sends no more: the other end learns it behind all that was sent, or immediately by a
// reset.
void System::end_of(std::uint32_t number, std::size_t which, bool reset) {
  Link& link = *links_[number];
  End& own = link.ends[which];
  End& other = link.ends[1 - which];
  if (reset) {
    reset_other(number, which);
  } else if (!own.dead && !other.fin_sent) {
    other.fin_sent = true;
    schedule_arrival(number, 1 - which);
  }
  if (!own.closed) return;
  // Bytes that reach it from here on are answered with a reset; so are those on their way.
  other.unheard = own.in.size() != 0;
  const bool on_its_way = own.in.size() != own.arrived;
  own.in.clear();
  own.arrived = 0;
  if (on_its_way && !reset) reset_other(number, which);
}

// With both ends closed nobody sees its fate.
void System::free_if_unused(std::uint32_t number) {
  Link& link = *links_[number];
  if (!link.used || !link.ends[0].closed || !link.ends[1].closed) return;
  link.used = false;
  ++link.generation;
  free_links_.push_back(number);
}

}  // namespace encore::simulate
