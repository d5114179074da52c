#include "proxy/net/tls_tickets.h"

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::net {
namespace {

using Tickets = std::shared_ptr<TlsTickets>;
constexpr Nanoseconds kLife = TlsTickets::kLife;

Tickets make(MonotonicTime now) {
  auto made = TlsTickets::create(now);
  REQUIRE(made.has_value());
  return *made;
}

}  // namespace

TEST_CASE("a key for tickets is replaced after its time and understood for two more",
          "[net][tls]") {
  const MonotonicTime start{std::chrono::hours(5)};
  const Tickets tickets = make(start);
  const TlsTickets::Key first = tickets->current(start);
  CHECK(tickets->current(start + kLife - Nanoseconds(1)).name == first.name);
  const TlsTickets::Key second = tickets->current(start + kLife);
  CHECK(second.name != first.name);
  CHECK(second.cipher != first.cipher);
  CHECK(second.mac != first.mac);
  const auto found = tickets->find(first.name, start + 2 * kLife);
  REQUIRE(found.has_value());
  CHECK(found->key.cipher == first.cipher);
  CHECK_FALSE(found->is_current);
  CHECK(tickets->find(first.name, start + 3 * kLife - Nanoseconds(1)).has_value());
  CHECK_FALSE(tickets->find(first.name, start + 3 * kLife).has_value());
  CHECK(tickets->find(second.name, start + 3 * kLife).has_value());
}

TEST_CASE("no key outlives its time where nobody has come meanwhile", "[net][tls]") {
  const MonotonicTime start{std::chrono::hours(5)};
  const Tickets tickets = make(start);
  const TlsTickets::Key first = tickets->current(start);
  CHECK_FALSE(tickets->find(first.name, start + 3 * kLife).has_value());
}

TEST_CASE("keys of a file are those of all who have it", "[net][tls]") {
  const server::TemporaryDirectory directory;
  const std::string file = directory / "tickets";
  const auto write = [&](const std::string& text, mode_t mode = 0600) {
    std::ofstream(file, std::ios::binary) << text;
    REQUIRE(::chmod(file.c_str(), mode) == 0);
  };
  const std::string a(160, 'a');
  const std::string b(160, 'B');
  write("# the present one\n" + a + "\r\n\n" + b);
  const auto read = TlsTickets::read(file);
  REQUIRE(read.has_value());
  const MonotonicTime later{std::chrono::hours(24 * 365)};
  const TlsTickets::Key present = (*read)->current(later);
  CHECK(present.name[0] == 0xaa);
  CHECK(present.mac[31] == 0xaa);
  std::array<unsigned char, 16> name{};
  name.fill(0xbb);
  const auto older = (*read)->find(name, later);
  REQUIRE(older.has_value());
  CHECK_FALSE(older->is_current);

  const auto refused = [&] {
    const auto made = TlsTickets::read(file);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().message.starts_with(file + ":"));
    // Its content must not be in the message.
    CHECK(made.error().message.find("aaaa") == std::string::npos);
    return made.error().message;
  };
  write(a, 0644);
  CHECK(refused().find("others can read") != std::string::npos);
  write(a + "\n" + a.substr(1) + "\n");
  CHECK(refused().find(":2: no key") != std::string::npos);
  write(a.substr(1) + "g\n");
  CHECK(refused().find(":1: no key") != std::string::npos);
  write("\n# nothing\n");
  CHECK(refused().find("no key in it") != std::string::npos);
  std::string many;
  for (int i = 0; i < 17; ++i) many += a + "\n";
  write(many);
  CHECK(refused().find(":17: too many") != std::string::npos);
}

TEST_CASE("keys go on in another process, with their age", "[net][tls][tickets]") {
  const MonotonicTime start{std::chrono::hours(1000)};
  const auto tickets = *TlsTickets::create(start);
  const auto first = tickets->current(start);
  const auto later = start + TlsTickets::kLife;
  const auto second = tickets->current(later);
  const std::string saved = tickets->save(later);
  const auto restored = TlsTickets::restore(saved, later);
  REQUIRE(restored);
  CHECK((*restored)->current(later).name == second.name);
  CHECK((*restored)->find(first.name, later));
  // The time for the next key is that of the old process.
  CHECK((*restored)->current(later + TlsTickets::kLife).name != second.name);
  for (std::size_t size = 0; size < saved.size(); ++size) {
    CHECK_FALSE(TlsTickets::restore(saved.substr(0, size), later));
  }
  CHECK_FALSE(TlsTickets::restore(saved + saved, later));
  CHECK_FALSE(TlsTickets::restore(std::string(saved.size(), '\xff'), later));
}

}  // namespace encore::net
