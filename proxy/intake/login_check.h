// LoginCheck: checks the credentials of a connection's requests against a listener's files. A
// password that nobody remembers is checked on another thread, and its request waits. Confined to
// its worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/time.h"
#include "proxy/http/message.h"
#include "proxy/intake/password_checks.h"
#include "proxy/intake/refusal.h"
#include "proxy/net/address.h"
#include "proxy/net/loop.h"
#include "proxy/net/secrets.h"
#include "proxy/observe/stats.h"
#include "proxy/settings/credentials.h"
#include "proxy/settings/listener_policy.h"
#include "proxy/settings/token_buckets.h"

namespace encore::server {

// The parts of the worker that logins use. All are borrowed.
struct LoginServices {
  net::Loop& loop;  // that outcomes of other threads come back to
  PasswordChecks& passwords;
  WorkerStats& stats;
};

class LoginCheck {
 public:
  // `resume` is called from the loop when a request that had to wait may be checked again.
  explicit LoginCheck(std::function<void()> resume) : resume_(std::move(resume)) {}
  ~LoginCheck();
  LoginCheck(const LoginCheck&) = delete;
  LoginCheck& operator=(const LoginCheck&) = delete;
  void set_resume(std::function<void()> resume) { resume_ = std::move(resume); }

  // A request with its credentials. Borrowed. REQUIRES: the policy has credentials.
  struct Request {
    const ListenerPolicy& policy;
    const http::Fields& fields;
    http::FieldId field;  // that credentials come in
    const net::Address& client;
    const std::shared_ptr<TokenBuckets>& failures;  // by client; null: not counted
  };
  struct Right {};
  struct Waits {};
  std::variant<Right, Refusal, Waits> check(const LoginServices& services, const Request& request);

  // The outcome of the last check that was right, until clear(): a user's name, or what the file
  // calls a token, and its mark (Credentials::mark_of()). Empty: there is none.
  const std::string& user() const { return user_; }
  const std::string& mark() const { return mark_; }
  void clear() {
    user_.clear();
    mark_.clear();
  }

 private:
  // A password that is being checked.
  struct Check {
    LoginCheck* owner = nullptr;  // null: gone
    net::Digest id{};
    std::optional<LoginVerdict> verdict;  // nothing: not known yet
  };
  // Unchecked: the program that knows gave no answer.
  enum class LookupResult : std::uint8_t {
    kRight,
    kWrong,
    kUnknown,
    kWaits,
    kTooMany,
    kBusy,
    kUnchecked
  };
  static LookupResult found_by(LoginVerdict verdict);
  // Sets the name of a login that has none of its own.
  LookupResult find(const LoginServices& services, const Request& request, Login& login);
  LookupResult find_password(const LoginServices& services, const Request& request,
                             const Login& login, const std::string& whose);

  std::string user_;
  std::string mark_;
  std::function<void()> resume_;
  std::shared_ptr<Check> check_;  // null: none
};

}  // namespace encore::server
