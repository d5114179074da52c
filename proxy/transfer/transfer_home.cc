#include "proxy/transfer/transfer_home.h"

#include "base/check.h"

namespace encore::server {

TransferHome::~TransferHome() {
  ENCORE_CHECK(size_ == 0, "readers leave before the end of their home");
}

TransferHome::Ticket TransferHome::enter(WakeTarget& target) {
  ENCORE_CHECK(is_here(), "who may be woken enters on the home's own thread");
  if (first_free_ == kNoPlace) {
    first_free_ = static_cast<std::uint32_t>(places_.size());
    places_.push_back({.target = nullptr, .generation = 0, .next_free = kNoPlace});
  }
  const std::uint32_t at = first_free_;
  Place& place = places_[at];
  ENCORE_CHECK(place.target == nullptr, "a place that is free has nobody in it");
  first_free_ = place.next_free;
  place.target = &target;
  // 0 is the generation of a ticket that is empty.
  if (++place.generation == 0) place.generation = 1;
  ++size_;
  return {.place = at, .generation = place.generation};
}

void TransferHome::leave(Ticket ticket) {
  ENCORE_CHECK(is_here(), "who may be woken leaves on the home's own thread");
  ENCORE_CHECK(ticket.place < places_.size(), "a ticket is of its own home");
  Place& place = places_[ticket.place];
  ENCORE_CHECK(place.target != nullptr && place.generation == ticket.generation,
               "a reader leaves its home once");
  place.target = nullptr;
  place.next_free = first_free_;
  first_free_ = ticket.place;
  --size_;
}

WakeTarget* TransferHome::find(Ticket ticket) const {
  if (ticket.place >= places_.size()) return nullptr;
  const Place& place = places_[ticket.place];
  return place.generation == ticket.generation ? place.target : nullptr;
}

void TransferHome::wake(Ticket ticket) {
  loop_.post([this, ticket] {
    if (WakeTarget* target = find(ticket)) target->on_wake_up();
  });
}

}  // namespace encore::server
