#include "proxy/intake/login_check.h"

#include <chrono>

namespace encore::server {

LoginCheck::LookupResult LoginCheck::found_by(LoginVerdict verdict) {
  switch (verdict) {
    case LoginVerdict::kRight:
      return LookupResult::kRight;
    case LoginVerdict::kWrong:
      return LookupResult::kWrong;
    case LoginVerdict::kUnknown:
      break;
  }
  return LookupResult::kUnchecked;
}

LoginCheck::~LoginCheck() {
  if (check_ != nullptr) check_->owner = nullptr;
}

std::variant<LoginCheck::Right, Refusal, LoginCheck::Waits> LoginCheck::check(
    const LoginServices& services, const Request& request) {
  Login login;
  const http::FieldId field = request.field;
  if (request.fields.count(field) == 1) login = read_login(request.fields.value(field));
  switch (find(services, request, login)) {
    case LookupResult::kRight:
      services.stats.logins_right.add();
      mark_ = request.policy.credentials->mark_of(login);
      user_ = std::move(login.name);
      return Right{};
    case LookupResult::kWaits:
      return Waits{};
    case LookupResult::kTooMany:
      services.stats.logins_limited.add();
      return too_many("failed-logins", std::chrono::minutes(1));
    case LookupResult::kBusy:
      services.stats.logins_limited.add();
      return logins_busy();
    case LookupResult::kUnchecked:
      return login_unchecked();
    case LookupResult::kWrong:
    case LookupResult::kUnknown:
      break;
  }
  const bool wrong = request.fields.has(field);
  if (wrong) services.stats.logins_failed.add();
  return login_needed(field, wrong ? Credential::kWrong : Credential::kNone,
                      request.policy.challenge);
}

LoginCheck::LookupResult LoginCheck::find(const LoginServices& services, const Request& request,
                                          Login& login) {
  const Credentials& credentials = *request.policy.credentials;
  const auto network = request.client.network_bytes();
  const std::string whose(reinterpret_cast<const char*>(network.data()), network.size());
  if (login.scheme == Login::Scheme::kBasic && credentials.has_users()) {
    return find_password(services, request, login, whose);
  }
  if (login.scheme != Login::Scheme::kBearer || !credentials.has_tokens())
    return LookupResult::kUnknown;
  // A token is checked, no matter what others at this address have tried: that costs next to
  // nothing, and nobody guesses 128 bits, however often he may.
  if (const std::string* name = credentials.name_of_token(login.secret)) {
    login.name = *name;
    return LookupResult::kRight;
  }
  const bool is_limited = request.failures != nullptr &&
                          request.failures->take(whose, services.loop.now()).count() != 0;
  return is_limited ? LookupResult::kTooMany : LookupResult::kWrong;
}

// Checks a password that is not remembered, on another thread.
LoginCheck::LookupResult LoginCheck::find_password(const LoginServices& services,
                                                   const Request& request, const Login& login,
                                                   const std::string& whose) {
  const Credentials::Hash hash = request.policy.credentials->hash_of(login.name);
  if (hash.text == nullptr) return LookupResult::kUnknown;
  const net::Digest id = services.passwords.id_of(login, *hash.text);
  const MonotonicTime now = services.loop.now();
  const std::shared_ptr<TokenBuckets>& failures = request.failures;
  if (check_ != nullptr && check_->id == id) {
    if (!check_->verdict) return LookupResult::kWaits;
    const LoginVerdict verdict = *check_->verdict;
    check_.reset();
    return found_by(verdict);
  }
  if (hash.known && services.passwords.is_remembered(id, now)) return LookupResult::kRight;
  if (check_ != nullptr) check_->owner = nullptr;
  check_ = std::make_shared<Check>(Check{.owner = this, .id = id, .verdict = {}});
  // `counted`: where it counts as wrong until it is known to be right; null: nowhere.
  const auto tell = [&](std::shared_ptr<TokenBuckets> counted) {
    return [check = check_, &loop = services.loop, counted = std::move(counted),
            who = whose](LoginVerdict verdict) mutable {
      loop.post([check = std::move(check), &loop, counted = std::move(counted),
                 who = std::move(who), verdict] {
        const bool is_wrong = verdict == LoginVerdict::kWrong;
        if (!is_wrong && counted != nullptr) counted->give_back(who, loop.now());
        if (check->owner == nullptr) return;
        check->verdict = verdict;
        check->owner->resume_();
      });
    };
  };
  if (services.passwords.join(whose, id, tell(nullptr))) return LookupResult::kWaits;
  if (failures != nullptr && failures->take(whose, now).count() != 0) {
    check_.reset();
    return LookupResult::kTooMany;
  }
  const bool taken = services.passwords.check({.client = whose,
                                               .login = login,
                                               .hash = *hash.text,
                                               .known = hash.known,
                                               .helper = hash.helper,
                                               .done = tell(failures)});
  if (taken) return LookupResult::kWaits;
  if (failures != nullptr) failures->give_back(whose, now);
  check_.reset();
  return LookupResult::kBusy;
}

}  // namespace encore::server
