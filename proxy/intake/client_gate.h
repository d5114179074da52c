// ClientGate: what the requests of a connection pass where their listener has something of its own
// (ListenerPolicy): the PROXY header in front of them, and who sends them. One a connection, made
// when it is first needed. Confined to its worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "proxy/http/message.h"
#include "proxy/intake/password_checks.h"
#include "proxy/net/address.h"
#include "proxy/net/loop.h"
#include "proxy/observe/outcome.h"
#include "proxy/observe/stats.h"
#include "proxy/request/request_ids.h"
#include "proxy/request/request_view.h"
#include "proxy/settings/listener_policy.h"
#include "proxy/settings/runtime.h"
#include "proxy/settings/sender.h"

namespace encore::server {

// A request that is answered by the connection itself.
struct Refusal {
  // Of the connection, as far as this is its to say: it is kept for those who may well ask next for
  // what they get, and ends with those who ask in vain.
  enum class Further : std::uint8_t { kEnds, kMayStay };

  int status = 0;  // 0: it is not refused
  Outcome outcome = Outcome::kBadRequest;
  std::string_view detail = {};
  std::string_view text = {};
  std::string fields = {};  // further field lines
  Further further = Further::kEnds;
  const Rule* rule = nullptr;  // that says so; null: none
  bool is_head_read = false;   // of a bad request: what is wrong is what its head asks for
};
// Of those that come too often; it may be tried again after `wait`.
Refusal too_many(std::string_view detail, Nanoseconds wait);

// What the listener's lists refuse, as "host-not-allowed"; empty: nothing. REQUIRES: `view` is
// made.
std::string_view refused_by_lists(const ListenerPolicy& policy, const http::RequestHead& head,
                                  const RequestView& view, const net::Address& client);

// What logging in needs of the worker. All are borrowed.
struct LoginServices {
  net::Loop& loop;
  PasswordChecks& passwords;
  const Runtime& runtime;
  WorkerStats& stats;
};

class ClientGate;
// Returns the id of a request: the one from a trusted proxy if it is a valid name, else a new one;
// valid until the next call. `gate` and `policy` may be null: nobody is trusted. `head` is null if
// there is none.
std::string_view request_id(RequestIds& ids, const ClientGate* gate, const ListenerPolicy* policy,
                            const http::RequestHead* head);

class ClientGate {
 public:
  // `resume` is called from the loop where a request that had to wait may be looked at again.
  ClientGate(const net::Address& peer, std::function<void()> resume)
      : from_(peer), resume_(std::move(resume)) {}
  ~ClientGate();
  ClientGate(const ClientGate&) = delete;
  ClientGate& operator=(const ClientGate&) = delete;

  // A PROXY header must come first.
  void await_header() { awaits_header_ = true; }
  bool awaits_header() const { return awaits_header_; }
  enum class Header : std::uint8_t { kIncomplete, kTaken, kRefused };
  struct Intake {
    Header header = Header::kRefused;
    std::size_t used = 0;  // bytes of the header, where it is taken
  };
  // REQUIRES: it is awaited.
  Intake take_header(const ListenerPolicy& policy, std::string_view input);

  // Whose connection it is: the peer's, or of whom a PROXY header has named.
  const net::Address& from() const { return from_; }
  // Who sends this request. Says so in the view as well, which knows already whether the connection
  // is of TLS. `policy` may be null.
  net::Address identify(const ListenerPolicy* policy, const http::Fields& fields,
                        RequestView& view);
  // Whether the request may go on, by its sender, what it names and who has logged in. Credentials
  // that are for us are taken out of the head. Nothing: it has to wait, and is to be brought here
  // again. REQUIRES: `view` is made.
  std::optional<Refusal> check(const LoginServices& services, const ListenerPolicy& policy,
                               http::RequestHead& head, const RequestView& view,
                               const net::Address& client);
  // Who has logged in for the request that was identified last: a user's name, or what the file
  // calls a token; empty: nobody. Nothing of it is a client's that was not found right.
  const std::string& user() const { return user_; }
  // By which that is known over reloads (Credentials::mark_of()).
  const std::string& login() const { return login_; }

 private:
  std::optional<Refusal> log_in(const LoginServices& services, const ListenerPolicy& policy,
                                http::RequestHead& head, const RequestView& view,
                                const net::Address& client);

  // A password that is being checked.
  struct Check {
    ClientGate* gate = nullptr;  // null: gone
    net::Digest id{};
    std::optional<bool> right;  // nothing: not known yet
  };
  enum class Found : std::uint8_t { kRight, kWrong, kUnknown, kWaits, kTooMany, kBusy };
  // Sets the name of a login that has none of its own.
  Found look_at(const LoginServices& services, const Credentials& credentials, Login& login,
                const net::Address& client);
  Found look_at_password(const LoginServices& services, const Credentials& credentials,
                         const Login& login, const std::string& whose);

  net::Address from_;
  bool awaits_header_ = false;
  bool secure_ = false;  // by the PROXY header
  std::string user_;
  std::string login_;
  std::function<void()> resume_;
  std::shared_ptr<Check> check_;  // null: none
};

}  // namespace encore::server
