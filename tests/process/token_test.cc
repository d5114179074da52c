#include "proxy/process/token.h"

#include <sys/stat.h>

#include <fstream>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

constexpr const char* kToken = "abcDEF012-._~+/=";

TEST_CASE("a token is one line of a file that others cannot read", "[process]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "token";
  const auto write = [&](const std::string& text, mode_t mode) {
    std::ofstream(path, std::ios::binary) << text;
    REQUIRE(::chmod(path.c_str(), mode) == 0);
  };
  CHECK_FALSE(Token::read(path));
  for (const mode_t mode : {0600U, 0400U, 0640U}) {
    write(std::string(kToken) + "\n", mode);
    const auto token = Token::read(path);
    REQUIRE(token);
    CHECK(token->authorizes(std::string("Bearer ") + kToken));
    CHECK(token->field() == std::string("Bearer ") + kToken);
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
  }
  for (const mode_t mode : {0644U, 0604U, 0620U, 0660U, 0601U}) {
    CAPTURE(mode);
    write(std::string(kToken) + "\n", mode);
    const auto token = Token::read(path);
    REQUIRE_FALSE(token);
    CHECK(token.error().message.starts_with("cannot take the token of " + path));
  }
  for (const std::string& text :
       {std::string(), std::string(15, 'a'), std::string(257, 'a'), std::string(5000, 'a'),
        std::string(16, ' '), std::string(kToken) + "\n" + kToken, std::string(16, '\0')}) {
    write(text, 0600);
    const auto token = Token::read(path);
    REQUIRE_FALSE(token);
    // Its contents are nobody's to read.
    CHECK(token.error().message.find("aaa") == std::string::npos);
  }
  write(std::string(256, 'a') + "\r\n", 0600);
  CHECK(Token::read(path));
  CHECK_FALSE(Token::read(directory.path()));
}

}  // namespace
}  // namespace encore::server
