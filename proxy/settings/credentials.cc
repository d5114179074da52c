#include "proxy/settings/credentials.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/secret_file.h"
#include "proxy/http/list.h"

namespace encore::server {
namespace {

constexpr std::size_t kNameBytesMax = 255;
constexpr std::size_t kLinesMax = 100'000;
// Lines of the longest hashes and names.
constexpr std::size_t kFileBytesMax = kLinesMax * 1024;

// Returns the file's text, and a warning about its mode. It holds hashes and digests: a reader has
// no password yet, but a writer can let himself in.
Result<Secret> read_file(const std::string& file) {
  auto read = read_secret(file, kFileBytesMax, {.others_read = OthersRead::kTold});
  if (!read) return fail(file + ": cannot be read: " + read.error().message);
  if (!read->warning.empty()) read->warning = file + ": " + read->warning;
  return read;
}

// Calls read(name, rest) for each line "NAME:REST" of a file; empty ones and those that begin with
// '#' are comments.
template <typename Read>
Result<void> read_lines(const std::string& file, std::string_view text, Read&& read) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto wrong = [&](const std::string& what) {
      return fail(file + ":" + std::to_string(number) + ": " + what);
    };
    if (number > kLinesMax) return wrong("too many lines");
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return wrong("has no colon behind a name");
    if (colon == 0 || colon > kNameBytesMax) return wrong("has no name of 1 to 255 bytes");
    if (auto done = read(std::string(line.substr(0, colon)), std::string(line.substr(colon + 1)));
        !done) {
      return wrong(done.error().message);
    }
  }
  return {};
}

std::string_view text_of(const net::Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

Login read_login(std::string_view value) {
  Login login;
  const std::size_t space = value.find(' ');
  const std::string_view scheme = value.substr(0, space);
  const std::string_view rest =
      space == std::string_view::npos ? std::string_view() : http::trim_ows(value.substr(space));
  login.scheme = Login::Scheme::kUnreadable;
  if (http::equals_lower(scheme, "bearer") && !rest.empty()) {
    login.scheme = Login::Scheme::kBearer;
    login.secret = rest;
  } else if (http::equals_lower(scheme, "basic")) {
    auto decoded = net::decode_base64(rest);
    const std::size_t colon = decoded ? decoded->find(':') : std::string::npos;
    if (colon == std::string::npos) return login;
    login.scheme = Login::Scheme::kBasic;
    login.name = decoded->substr(0, colon);
    login.secret = decoded->substr(colon + 1);
  }
  return login;
}

Result<std::shared_ptr<const Credentials>> Credentials::load(
    const std::string& users_file, const std::string& tokens_file,
    const std::vector<std::string>& helper) {
  std::shared_ptr<Credentials> made(new Credentials());
  if (!helper.empty()) {
    if (!users_file.empty())
      return fail("users_helper: users are in users_file; accepted: one of both");
    if (auto set = made->set_helper(helper); !set) return std::unexpected(set.error());
  }
  if (auto read = made->read_users(users_file); !read) return std::unexpected(read.error());
  if (auto read = made->read_tokens(tokens_file); !read) return std::unexpected(read.error());
  return made;
}

Result<void> Credentials::set_helper(const std::vector<std::string>& command) {
  if (auto good = LoginHelper::check_program(command); !good) return good;
  has_users_ = true;
  for (const std::string& word : command) helper_text_ += std::to_string(word.size()) + ":" + word;
  helper_ = std::make_shared<LoginHelper>(command);
  return {};
}

Result<void> Credentials::read_users(const std::string& file) {
  if (file.empty()) return {};
  has_users_ = true;
  auto secret = read_file(file);
  if (!secret) return std::unexpected(secret.error());
  if (!secret->warning.empty()) warnings_.push_back(std::move(secret->warning));
  auto read =
      read_lines(file, secret->text, [this](std::string name, std::string hash) -> Result<void> {
        if (auto good = net::check_password_hash(hash); !good) return good;
        if (!users_.emplace(std::move(name), std::move(hash)).second) return fail("a name twice");
        return {};
      });
  if (!read || users_.empty()) return read;
  for (const auto& [name, hash] : users_) hashes_.push_back(&hash);
  draw_key_ = net::sha256(*hashes_.front());
  return {};
}

Result<void> Credentials::read_tokens(const std::string& file) {
  if (file.empty()) return {};
  has_tokens_ = true;
  auto secret = read_file(file);
  if (!secret) return std::unexpected(secret.error());
  if (!secret->warning.empty()) warnings_.push_back(std::move(secret->warning));
  return read_lines(
      file, secret->text, [this](std::string name, const std::string& hex) -> Result<void> {
        const auto digest = net::parse_digest(hex);
        if (!digest) return fail("has no SHA-256 of 64 hexadecimal digits");
        tokens_.emplace(net::keyed_digest(token_key_, text_of(*digest)), std::move(name));
        return {};
      });
}

Credentials::Hash Credentials::hash_of(std::string_view name) const {
  if (helper_ != nullptr) return {.text = &helper_text_, .known = true, .helper = helper_};
  if (users_.empty()) return {};
  // Drawn for those who are known as well, as this takes time, too.
  const net::Digest drawn = net::keyed_digest(draw_key_, name);
  std::uint64_t number = 0;
  std::memcpy(&number, drawn.data(), sizeof number);
  const auto found = users_.find(name);
  if (found != users_.end()) return {.text = &found->second, .known = true};
  return {.text = hashes_[number % hashes_.size()]};
}

const std::string* Credentials::name_of_token(std::string_view token) const {
  const auto found = tokens_.find(net::keyed_digest(token_key_, text_of(net::sha256(token))));
  return found == tokens_.end() ? nullptr : &found->second;
}

namespace {

constexpr char kUserMark = 'u';
constexpr char kTokenMark = 't';
constexpr char kHelperMark = 'h';

// A name has no end of line: it is of a line, or a helper has been asked for it.
std::string mark(char kind, std::string_view name, std::string_view secret) {
  return std::string(1, kind).append(name).append("\n").append(secret);
}

}  // namespace

std::string Credentials::mark_of(const Login& login) const {
  if (login.scheme == Login::Scheme::kBasic && helper_ != nullptr) {
    return mark(kHelperMark, login.name, helper_text_);
  }
  if (login.scheme == Login::Scheme::kBasic) {
    const auto found = users_.find(login.name);
    return found == users_.end() ? std::string() : mark(kUserMark, login.name, found->second);
  }
  const std::string* const name =
      login.scheme == Login::Scheme::kBearer ? name_of_token(login.secret) : nullptr;
  return name == nullptr ? std::string()
                         : mark(kTokenMark, *name, text_of(net::sha256(login.secret)));
}

bool Credentials::is_current(std::string_view mark) const {
  const std::size_t end = mark.find('\n');
  if (end == std::string_view::npos) return false;
  const std::string_view name = mark.substr(1, end - 1);
  const std::string_view secret = mark.substr(end + 1);
  // The program may have changed its mind: it is asked again when the login is forgotten.
  if (mark.front() == kHelperMark) return helper_ != nullptr && helper_text_ == secret;
  if (mark.front() == kUserMark) {
    const auto found = users_.find(name);
    return found != users_.end() && found->second == secret;
  }
  const auto found = tokens_.find(net::keyed_digest(token_key_, secret));
  return found != tokens_.end() && found->second == name;
}

}  // namespace encore::server
