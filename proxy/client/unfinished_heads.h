// UnfinishedHeads: the connections of a worker on which a request's head has begun and not ended,
// in the order of their beginnings. Confined to its worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

namespace encore::server {

class ClientConnection;

class UnfinishedHeads {
 public:
  struct Entry {
    ClientConnection* connection;
    std::size_t bytes;  // kept of it
  };
  // Place of a connection, kept by the connection; empty: no head of it is in progress.
  using Place = std::optional<std::list<Entry>::iterator>;

  // Enters it, or tells how much is kept by now.
  void note(ClientConnection& connection, Place& place, std::size_t bytes) {
    if (!place) place = entries_.insert(entries_.end(), {&connection, 0});
    bytes_ += bytes - (*place)->bytes;  // unsigned: the sum comes out right where it is less
    (*place)->bytes = bytes;
  }
  void drop(Place& place) {
    if (!place) return;
    bytes_ -= (*place)->bytes;
    entries_.erase(*place);
    place.reset();
  }
  std::size_t count() const { return entries_.size(); }
  std::uint64_t bytes() const { return bytes_; }
  // REQUIRES: there is one.
  ClientConnection& oldest() const { return *entries_.front().connection; }

 private:
  std::list<Entry> entries_;
  std::uint64_t bytes_ = 0;
};

}  // namespace encore::server
