#include "proxy/fleet/filter_transfer.h"

#include "tests/catch.h"
#include "tests/fleet/small_engine.h"

namespace encore::fleet {
namespace {

constexpr MonotonicTime kNoEnd = MonotonicTime::max();

FleetOptions options_of(const SmallEngine& engine, std::uint64_t bytes_max) {
  FleetOptions options;
  options.engine.host = "127.0.0.1";
  options.engine.port = engine.port();
  options.filter_bytes_max = bytes_max;
  return options;
}

// Bytes that differ from place to place.
std::string bytes_of(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 2654435761U) >> 13U);
  return bytes;
}

struct Transferring {
  SmallEngine engine;
  FleetOptions options;
  StopSignal stop;
  Result<net::SealingPair> pair = net::SealingPair::create();
  std::string key;

  explicit Transferring(std::uint64_t bytes_max = 16 * kPartBytes)
      : options(options_of(engine, bytes_max)) {
    REQUIRE(pair);
    key = net::to_hex(pair->public_key());
  }
  std::string name(int part) const {
    return "encore:purges:filter:" + key + ":" + std::to_string(part);
  }
  Result<std::string> receive(Nanoseconds patience = std::chrono::seconds(30)) {
    FilterTransfer transfer(options, stop, {.begin = patience, .silence = patience});
    return transfer.receive(*pair, kNoEnd);
  }
  Result<void> send(std::string_view bytes, Nanoseconds patience = std::chrono::seconds(30)) {
    FilterTransfer transfer(options, stop, {.begin = patience, .silence = patience});
    return transfer.send(key, bytes);
  }
  std::string fault(Nanoseconds patience = std::chrono::milliseconds(1)) {
    const auto received = receive(patience);
    return received ? "none" : received.error().message;
  }
};

TEST_CASE("a filter passes through the engine, a few parts at a time", "[fleet]") {
  const std::size_t size = GENERATE(1U, kPartBytes, 9 * kPartBytes + 7);
  Transferring one;
  const std::string sent = bytes_of(size);
  Result<std::string> received;
  std::thread receiver([&] { received = one.receive(); });
  const auto done = one.send(sent);
  receiver.join();
  REQUIRE(done);
  REQUIRE(received);
  CHECK(*received == sent);
  CHECK(one.engine.values().empty());
  CHECK(one.engine.most() <= 6);  // the head, four parts, and the one that is being taken
}

TEST_CASE("the engine never has a filter in plain text", "[fleet]") {
  Transferring one;
  REQUIRE(one.send("a seed, and what it is for"));
  const auto values = one.engine.values();
  REQUIRE(values.size() == 2);
  for (const auto& [name, value] : values) CHECK(value.find("seed") == std::string::npos);
  CHECK(values.at(one.name(1)).size() == 26 + net::kSealBytes);
}

TEST_CASE("a giver does not fill an engine for a node that has gone", "[fleet]") {
  Transferring one;
  const auto sent = one.send(bytes_of(9 * kPartBytes), std::chrono::milliseconds(1));
  REQUIRE_FALSE(sent);
  CHECK(sent.error().message == "it does not read");
  CHECK(one.engine.most() == 5);
  CHECK(one.engine.values().empty());
}

TEST_CASE("an engine that is full refuses a filter", "[fleet]") {
  Transferring one;
  one.engine.fill();
  const auto sent = one.send("bytes");
  REQUIRE_FALSE(sent);
  CHECK(sent.error().message.starts_with("the engine refuses: OOM"));
}

TEST_CASE("what is no filter for this node is refused", "[fleet]") {
  Transferring one(kPartBytes);
  CHECK(one.fault().starts_with("nothing came for"));
  one.engine.set(one.name(0), "<html>");
  CHECK(one.fault() == "it begins with \"<html>\"");
  one.engine.set(one.name(0), std::string(1000, 'x'));
  CHECK(one.fault() == "it sent more than the 256 bytes of a part");

  const auto giver = net::SealingPair::create();
  REQUIRE(giver);
  TransferHead head{.bytes = 10'000'000'000, .key = giver->public_key()};
  one.engine.set(one.name(0), encode(head));
  CHECK(one.fault() ==
        "it has 10000000000 bytes, accepted: at most 1048576, as admission.adopted_memory has it");
  head.key = {};
  head.bytes = 5;
  one.engine.set(one.name(0), encode(head));
  CHECK(one.fault() == "its key is none");

  head.key = giver->public_key();
  one.engine.set(one.name(0), encode(head));
  CHECK(one.fault().starts_with("nothing came for"));
  one.engine.set(one.name(1), std::string(6 + net::kSealBytes, 'x'));
  CHECK(one.fault() == "it sent more than the 21 bytes of a part");
  one.engine.set(one.name(1), std::string(5 + net::kSealBytes, 'x'));
  CHECK(one.fault() == "part 1 is not what was sealed for this node");
  // It is sealed, but for less than the head says.
  const auto key = giver->agree(one.pair->public_key(), "encore-filter 1 5");
  REQUIRE(key);
  one.engine.set(one.name(1), net::seal(*key, 1, "1234"));
  CHECK(one.fault() == "part 1 is not what was sealed for this node");
  one.engine.set(one.name(1), net::seal(*key, 2, "12345"));
  CHECK(one.fault() == "part 1 is not what was sealed for this node");
  one.engine.set(one.name(1), net::seal(*key, 1, "12345"));
  CHECK(one.receive() == "12345");
}

TEST_CASE("a head is read as it was written", "[fleet]") {
  const auto pair = net::SealingPair::create();
  REQUIRE(pair);
  const TransferHead head{.bytes = 77, .key = pair->public_key()};
  CHECK(decode_transfer_head(encode(head)) == head);
  const std::string good = encode(head);
  for (const std::string& bad :
       {std::string(), std::string("encore-filter 1 "), std::string("encore-filter 1 77"),
        std::string("encore-filter 1 77 "), good + "0", good.substr(0, good.size() - 1),
        "encore-filter 2" + good.substr(15), "encore-filter 1 0" + good.substr(18),
        "encore-filter 1 -7" + good.substr(18),
        "encore-filter 1 18446744073709551616" + good.substr(18)}) {
    CAPTURE(bad);
    CHECK_FALSE(decode_transfer_head(bad));
  }
}

TEST_CASE("a stop ends a transfer", "[fleet]") {
  Transferring one;
  std::string fault;
  std::thread receiver([&] { fault = one.fault(std::chrono::hours(1)); });
  one.stop.stop();
  receiver.join();
  CHECK_THAT(fault, Catch::Contains("this process is exiting"));
}

}  // namespace
}  // namespace encore::fleet
