// Held: what a simulated proxy holds, between two turns of its workers, compared with what it
// should: by another of its own parts, by the simulated system, or with nothing where nobody asks
// for anything. One thread. Why from outside, and without access control: docs/decisions/0450.
#pragma once

#include <functional>
#include <string>

#include "proxy/process/proxy.h"
#include "tests/simulate/system.h"

namespace encore::simulate {

class Held {
 public:
  using OnFault = std::function<void(const std::string& what)>;
  // All are borrowed.
  Held(server::Proxy& proxy, const System& system, const OnFault& on_fault)
      : proxy_(proxy), system_(system), on_fault_(on_fault) {}

  // At any time between turns.
  void look() const;
  void look_at_bodiless() const;
  // At such a time. REQUIRES: no read of a disk is in progress.
  void look_at_unread_disk() const;
  // No fetch is in progress any more, nor any answer: what fetches may go on for is over.
  bool is_quiet() const;
  // No request is in progress. REQUIRES: is_quiet().
  void look_at_rest() const;

 private:
  void look_at_connections() const;
  void look_at_reservations() const;
  void look_at_readers() const;
  // held_streams.cc
  void look_at_client_streams() const;
  void look_at_origin_streams() const;
  void look_at_lines() const;
  void same(std::uint64_t value, std::uint64_t wanted, const std::string& what) const;

  server::Proxy& proxy_;
  const System& system_;
  const OnFault& on_fault_;
};

}  // namespace encore::simulate
