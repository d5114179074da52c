#include "proxy/upgrade/message.h"

#include <random>
#include <string>

#include "tests/catch.h"

namespace encore::upgrade {
namespace {

Message listener() {
  Message message{.type = MessageType::kListener};
  message.add(Field::kName, "127.0.0.1:80").add_number(Field::kNumber, 4).add(Field::kBytes, "\0x");
  return message;
}

}  // namespace

TEST_CASE("a message is read as it was written", "[upgrade][message]") {
  const auto read = decode(encode(listener()));
  REQUIRE(read);
  CHECK(read->type == MessageType::kListener);
  CHECK(read->version == kProtocolVersion);
  CHECK(read->fields == listener().fields);
  CHECK(read->text(Field::kName) == "127.0.0.1:80");
  CHECK(read->number(Field::kNumber) == 4U);
  CHECK_FALSE(read->number(Field::kName));
  CHECK(read->find(Field::kSeed) == nullptr);
  CHECK(read->text(Field::kSeed).empty());
}

TEST_CASE("unknown types and fields are read, for the reader to skip", "[upgrade][message]") {
  Message message{.type = static_cast<MessageType>(4000), .version = 9};
  message.add(static_cast<Field>(999), "new").add(Field::kText, "old");
  const auto read = decode(encode(message));
  REQUIRE(read);
  CHECK(read->version == 9);
  CHECK(read->text(Field::kText) == "old");
}

TEST_CASE("a number is digits alone", "[upgrade][message]") {
  for (const char* text : {"", "-1", "1x", " 1", "18446744073709551616"}) {
    Message message;
    message.add(Field::kNumber, text);
    INFO(text);
    CHECK_FALSE(message.number(Field::kNumber));
  }
}

TEST_CASE("no part of a message is one, nor is more than one", "[upgrade][message]") {
  const std::string whole = encode(listener());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    CHECK_FALSE(decode(std::string_view(whole).substr(0, size)));
  }
  CHECK_FALSE(decode(whole + whole));
  CHECK_FALSE(decode(whole + '\0'));
  CHECK_FALSE(decode(std::string(kMessageBytesMax + 1, '\0')));
}

TEST_CASE("whatever bytes come, what is read of them is what would be written",
          "[upgrade][hostile]") {
  constexpr std::uint64_t kSeed = 20261128;
  INFO("seed " << kSeed);
  std::mt19937_64 random(kSeed);
  const std::string whole = encode(listener());
  std::size_t taken = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string bytes = whole;
    const auto changes = 1 + random() % 4;
    for (std::uint64_t i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const auto read = decode(bytes);
    if (!read) continue;
    ++taken;
    REQUIRE(encode(*read) == bytes);
  }
  CHECK(taken != 0);
}

}  // namespace encore::upgrade
