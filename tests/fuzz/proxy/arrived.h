// Judges what an origin gets: a request must be its client's, but for what a proxy adds and for
// what its rule and its listener make of it (docs/RULES.md, docs/CONFIG.md).
#pragma once

#include <optional>
#include <string>

#include "tests/fuzz/proxy/message.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

std::string text_of(const Head& head);

// A view of a whole request. Head and body are borrowed.
class ArrivedRequest {
 public:
  ArrivedRequest(World& world, const Head& head, const std::string& body)
      : world_(world), head_(head), body_(body) {}

  // Reports what is wrong with it to the world.
  void check(const Request& cause, const std::string& method) const;
  // The same of what came behind its content, of which no length was stated.
  void check_trailers(const Request& cause, const Fields& trailers) const;
  // The redirection of its client's that it follows; nothing: none.
  std::optional<Request::Offer> taken_offer(const Request& cause) const;

 private:
  std::string target() const;
  bool has(const Field& field) const;
  // Returns the fault; empty: none.
  std::string look_at_offer(const Request& cause, const Request::Offer& offer) const;
  std::string look_at_rule(const Request& cause) const;
  std::string look_at_cookies(const Request& cause) const;
  std::string look_at_sender(const Request& cause) const;
  std::string look_at_id() const;

  World& world_;
  const Head& head_;
  const std::string& body_;
};

}  // namespace encore::proxyfuzz
