#include "tests/simulate/system.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace encore::simulate {
namespace {

System* current_system = nullptr;

// From what is ready to the turn that sees it.
constexpr std::int64_t kTurnMax = 20'000;

struct Later {
  template <typename T>
  bool operator()(const T& a, const T& b) const {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
};

}  // namespace

System::System(std::uint64_t seed, const Adversity& adversity, std::int64_t wall_seconds)
    : random_(seed, 's', 0),
      adversity_(adversity),
      now_(kMonotonicStart),
      wall_seconds_at_start_(wall_seconds),
      wall_offset_(wall_seconds * 1'000'000'000 - kMonotonicStart),
      before_(std::exchange(current_system, this)) {}

System::~System() { current_system = before_; }

System* System::current() { return current_system; }

// ---- time

void System::push(What what, std::int64_t at, std::uint32_t subject, std::uint32_t generation) {
  items_.push_back({std::max(at, now_), random_.next(), subject, generation, what});
  std::ranges::push_heap(items_, Later());
}

bool System::step() {
  while (!items_.empty()) {
    std::ranges::pop_heap(items_, Later());
    const Item item = items_.back();
    items_.pop_back();
    switch (item.what) {
      case What::kWake: {
        Poller* poller = item.subject < pollers_.size() ? pollers_[item.subject] : nullptr;
        // One that was asked for earlier or later since counts alone.
        if (poller == nullptr || poller->wake_at != item.at) continue;
        now_ = item.at;
        poller->wake_at = -1;
        poller->run_wake();
        // It may have gone in its turn.
        if (pollers_[item.subject] == poller) poller->ask_for_turn();
        break;
      }
      case What::kArrive: {
        Link& link = *links_[item.subject / 2];
        End& end = link.ends[item.subject % 2];
        if (!link.used || link.generation != item.generation || end.due != item.at) continue;
        now_ = item.at;
        end.due = -1;
        arrive(item.subject / 2, item.subject % 2);
        break;
      }
      case What::kConnect: {
        const Descriptor& at = *descriptors_[item.subject];
        if (at.kind != Kind::kConnecting || at.generation != item.generation) continue;
        now_ = item.at;
        finish_connect(static_cast<int>(item.subject) + kFirstDescriptor);
        break;
      }
    }
    ++steps_;
    mix_into_digest(static_cast<std::uint64_t>(now_) ^ item.subject ^
                    (static_cast<std::uint64_t>(item.what) << 60));
    return true;
  }
  return false;
}

void System::add(Poller& poller) {
  auto free = std::ranges::find(pollers_, nullptr);
  if (free == pollers_.end()) free = pollers_.insert(free, nullptr);
  *free = &poller;
  poller.number = static_cast<std::uint32_t>(free - pollers_.begin());
}

void System::remove(Poller& poller) { pollers_[poller.number] = nullptr; }

void System::schedule_wake(Poller& poller, std::int64_t at) {
  at = std::max(at, now_);
  if (poller.wake_at >= 0 && poller.wake_at <= at) return;
  poller.wake_at = at;
  push(What::kWake, at, poller.number, 0);
}

void System::wake_soon(Poller& poller) {
  if (poller.wake_at >= 0 && poller.wake_at <= now_ + kTurnMax) return;
  std::int64_t delay = static_cast<std::int64_t>(random_.below(kTurnMax));
  if (adversity_.starve != 0 && random_.percent(adversity_.starve)) {
    delay =
        static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(adversity_.starve_max)));
  }
  schedule_wake(poller, now_ + delay);
}

// ---- descriptors

System::Descriptor* System::find(int descriptor) {
  return const_cast<Descriptor*>(std::as_const(*this).find(descriptor));
}

const System::Descriptor* System::find(int descriptor) const {
  const auto slot = static_cast<std::size_t>(descriptor - kFirstDescriptor);
  if (descriptor < kFirstDescriptor || slot >= descriptors_.size()) return nullptr;
  const Descriptor& at = *descriptors_[slot];
  return at.kind == Kind::kFree ? nullptr : &at;
}

System::Descriptor* System::checked(int descriptor, const char* call) {
  Descriptor* at = find(descriptor);
  if (at == nullptr) fault(std::string(call) + " on a descriptor that is not open");
  return at;
}

void System::tell_fault(const std::string& what) {
  if (on_fault) on_fault(what);
}

int System::fail(int error) {
  errno = error;
  return -1;
}

bool System::has_descriptor(Side side) {
  if (side == Side::kWorld || proxy_descriptors_ < descriptors_max_) return true;
  if (on_trouble) on_trouble(NetworkFault::kLong);
  return false;
}

int System::make(Side side, Kind kind) {
  if (free_descriptors_.empty()) {
    free_descriptors_.push_back(static_cast<std::uint32_t>(descriptors_.size()));
    descriptors_.push_back(std::make_unique<Descriptor>());
  }
  const std::uint32_t slot = free_descriptors_.back();
  free_descriptors_.pop_back();
  Descriptor& made = *descriptors_[slot];
  const std::uint32_t generation = made.generation + 1;
  std::vector<Watch*> watches = std::move(made.watches);  // empty, but it has room
  made = Descriptor();
  made.kind = kind;
  made.side = side;
  made.generation = generation;
  made.watches = std::move(watches);
  if (side == Side::kProxy) ++proxy_descriptors_;
  return static_cast<int>(slot) + kFirstDescriptor;
}

std::string System::describe_descriptors() const {
  std::string out;
  for (std::size_t slot = 0; slot < descriptors_.size(); ++slot) {
    const Descriptor& at = *descriptors_[slot];
    if (at.kind == Kind::kFree || at.side != Side::kProxy) continue;
    out += " " + std::to_string(slot) + " of kind " + std::to_string(static_cast<int>(at.kind)) +
           (at.kind == Kind::kStream ? (at.end == 0 ? " to an origin" : " of a client") : "") + ";";
  }
  return out;
}

System::Sockets System::proxy_sockets() const {
  Sockets out;
  for (const auto& each : descriptors_) {
    if (each->side != Side::kProxy) continue;
    if (each->kind == Kind::kConnecting || each->kind == Kind::kFailed) ++out.connecting;
    if (each->kind == Kind::kStream) ++(each->end == 0 ? out.origins : out.clients);
  }
  return out;
}

bool System::add_watch(Watch& watch) {
  Descriptor* at = checked(watch.descriptor, "waiting");
  if (at == nullptr) return fail(EBADF) == 0;
  at->watches.push_back(&watch);
  return true;
}

void System::remove_watch(Watch& watch) {
  Descriptor* at = find(watch.descriptor);
  if (at != nullptr) std::erase(at->watches, &watch);
}

std::uint8_t System::readiness(int descriptor) const {
  const Descriptor* at = find(descriptor);
  return at == nullptr ? std::uint8_t{kNone} : readiness_of(*at);
}

void System::tell(int descriptor) {
  Descriptor* at = find(descriptor);
  if (at == nullptr || at->watches.empty()) return;
  const std::uint8_t ready = readiness_of(*at);
  if (ready == kNone) return;
  for (Watch* watch : at->watches) {
    if ((watch->wants & ready) != 0) watch->poller->note_ready(*watch);
  }
}

std::uint8_t System::readiness_of(const Descriptor& at) const {
  switch (at.kind) {
    case Kind::kStream: {
      const Link& link = *links_[at.link];
      const End& end = link.ends[at.end];
      if (end.dead || at.error != 0) return kReadable | kWritable;
      std::uint8_t ready = kNone;
      if (end.arrived != 0 || end.fin_came || at.reads_no_more) ready |= kReadable;
      if (at.sends_no_more || is_writable(link, at)) ready |= kWritable;
      return ready;
    }
    case Kind::kListener:
      return at.listener.waiting.empty() ? kNone : kReadable;
    case Kind::kEvent:
      return at.count != 0 ? kReadable | kWritable : kWritable;
    case Kind::kFresh:
    case Kind::kFailed:
      return kReadable | kWritable;
    case Kind::kFree:
    case Kind::kConnecting:
      break;
  }
  return kNone;
}

// As Linux has it (sk_stream_is_writeable, tcp_stream_memory_free): two thirds of the buffer may be
// taken, and what is unsent is below the limit.
bool System::is_writable(const Link& link, const Descriptor& at) {
  const End& other = link.ends[1 - at.end];
  const std::size_t transit = other.in.size() - other.arrived;
  if (at.unsent_max != 0 && unsent_to(other) >= at.unsent_max) return false;
  return transit * 3 <= other.transit_max * 2;
}

// Beyond what the other end has room for.
std::size_t System::unsent_to(const End& end) {
  return end.in.size() - std::min(end.in.size(), std::max(end.in_max, end.arrived));
}

// ---- other descriptors than sockets

int System::open_null(Side side) {
  if (!has_descriptor(side)) return fail(EMFILE);
  return make(side, Kind::kFresh);
}

int System::eventfd(Side side, std::uint64_t count) {
  if (!has_descriptor(side)) return fail(EMFILE);
  const int made = make(side, Kind::kEvent);
  find(made)->count = count;
  return made;
}

ssize_t System::read_eventfd(int descriptor, std::uint64_t* count) {
  Descriptor* at = checked(descriptor, "read");
  if (at == nullptr || at->kind != Kind::kEvent) return fail(EBADF);
  if (at->count == 0) return fail(EAGAIN);
  *count = std::exchange(at->count, 0);
  return sizeof *count;
}

ssize_t System::write_eventfd(int descriptor, std::uint64_t count) {
  Descriptor* at = checked(descriptor, "write");
  if (at == nullptr || at->kind != Kind::kEvent) return fail(EBADF);
  at->count += count;
  tell(descriptor);
  return sizeof count;
}

}  // namespace encore::simulate
