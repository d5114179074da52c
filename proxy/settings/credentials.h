// Credentials: who may log in to a listener, as its files say. Immutable, thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "proxy/net/secrets.h"

namespace encore::server {

// What a request has for an Authorization, taken apart.
struct Login {
  enum class Scheme { kNone, kBasic, kBearer, kUnreadable } scheme = Scheme::kNone;
  std::string name;    // of kBasic
  std::string secret;  // its password, or the token
};
// `value` of the field; several lines of it are unreadable.
Login read_login(std::string_view value);

class Credentials {
 public:
  // Reads the files; "" is none. Errors: "FILE:LINE: what is wrong", never the line itself.
  static Result<std::shared_ptr<const Credentials>> load(const std::string& users_file,
                                                         const std::string& tokens_file);

  bool has_users() const { return has_users_; }
  bool has_tokens() const { return has_tokens_; }
  // The hash of a user's password. Of a name that there is not, somebody else's: so that it takes
  // as long to say no to it.
  struct Hash {
    const std::string* text = nullptr;  // null: there is nobody at all
    bool known = false;
  };
  Hash hash_of(std::string_view name) const;
  // What the file calls the token; null: there is none such.
  const std::string* name_of_token(std::string_view token) const;

 private:
  Credentials() = default;
  Result<void> read_users(const std::string& file);
  Result<void> read_tokens(const std::string& file);

  bool has_users_ = false;
  bool has_tokens_ = false;
  std::map<std::string, std::string, std::less<>> users_;
  struct Token {
    net::Digest digest;
    std::string name;
  };
  std::vector<Token> tokens_;
};

}  // namespace encore::server
