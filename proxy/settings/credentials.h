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
#include "proxy/settings/login_helper.h"

namespace encore::server {

// The parsed Authorization of a request.
struct Login {
  enum class Scheme { kNone, kBasic, kBearer, kUnreadable } scheme = Scheme::kNone;
  std::string name;    // for kBasic
  std::string secret;  // its password, or the token
};
// `value` of the field; several lines of it are unreadable.
Login read_login(std::string_view value);

class Credentials {
 public:
  // Reads the files; "" is none. Errors: "FILE:LINE: what is wrong", never the line itself; "FILE:
  // " and why it is not to be believed (base/secret_file.h).
  // `helper`: a program that knows the users, with its arguments; empty: none.
  static Result<std::shared_ptr<const Credentials>> load(
      const std::string& users_file, const std::string& tokens_file,
      const std::vector<std::string>& helper = {});

  // Modes of the files that should be mended, "FILE: ..." each.
  const std::vector<std::string>& warnings() const { return warnings_; }
  bool has_users() const { return has_users_; }
  bool has_tokens() const { return has_tokens_; }
  // The hash of a user's password. For an unknown name it is another user's, drawn from all and
  // always the same for that name. So a refusal takes as long as for a known name, and its duration
  // does not reveal whether a name exists, whatever kinds of hashes the file mixes.
  struct Hash {
    const std::string* text = nullptr;  // null: there is nobody at all
    bool known = false;
    std::shared_ptr<LoginHelper> helper = {};  // it says if the password is right; `text` names it
  };
  Hash hash_of(std::string_view name) const;
  // Returns the file's name for the token; null: there is none. The duration reveals nothing about
  // existing tokens: they are looked up by digests with a key of this process.
  const std::string* name_of_token(std::string_view token) const;

  // By which a login that was found right is known when the files are read again: its name, and the
  // hash of its password or the digest of its token. Empty: it is none of these.
  std::string mark_of(const Login& login) const;
  // True if what has that mark would be found right now.
  bool is_current(std::string_view mark) const;

 private:
  Credentials() = default;
  Result<void> set_helper(const std::vector<std::string>& command);
  Result<void> read_users(const std::string& file);
  Result<void> read_tokens(const std::string& file);

  std::shared_ptr<LoginHelper> helper_;  // null: there is none
  std::string helper_text_;
  bool has_users_ = false;
  bool has_tokens_ = false;
  std::map<std::string, std::string, std::less<>> users_;
  std::vector<const std::string*> hashes_;  // hashes of users_
  net::Digest draw_key_{};  // derived from the file, so that it is the same after a restart
  const net::Digest token_key_ = net::random_digest();
  std::map<net::Digest, std::string> tokens_;  // names by keyed digests of the digests
  std::vector<std::string> warnings_;
};

}  // namespace encore::server
