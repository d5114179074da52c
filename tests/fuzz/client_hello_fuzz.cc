// ClientHellos: whatever the bytes, no prefix of them is taken for something else than the whole,
// what says that it is one lies within its limits, and what follows it changes nothing.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "proxy/tls/client_hello.h"

using namespace encore;
using Status = tls::HelloStatus;

namespace {

void check_limits(const tls::ClientHello& hello) {
  ENCORE_CHECK(hello.server_name.empty() || tls::is_server_name(hello.server_name),
               "a name that is told is one");
  ENCORE_CHECK(!hello.versions.empty() && hello.versions.size() <= 127, "versions have a limit");
  ENCORE_CHECK(hello.protocols.size() <= 64, "protocols have a limit");
  for (const std::string& protocol : hello.protocols) {
    ENCORE_CHECK(!protocol.empty() && protocol.size() <= 255, "a protocol has a limit");
  }
}

bool same(const tls::ClientHello& a, const tls::ClientHello& b) {
  return a.server_name == b.server_name && a.protocols == b.protocols && a.versions == b.versions;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;  // each prefix is read: the square of it takes too long
  const std::string input(reinterpret_cast<const char*>(data), size);
  tls::ClientHello whole;
  const Status settled = tls::parse_client_hello(input, whole);
  if (settled == Status::kComplete) check_limits(whole);
  bool seen = false;
  for (std::size_t cut = 0; cut <= size; ++cut) {
    tls::ClientHello hello;
    // A copy with its own memory, so that a read behind its end is seen.
    const std::string part = input.substr(0, cut);
    const Status status = tls::parse_client_hello(part, hello);
    ENCORE_CHECK(!seen || status == settled, "what is settled stays so");
    if (status == Status::kIncomplete) continue;
    ENCORE_CHECK(status == settled, "what is settled is so of the whole");
    seen = true;
    if (status == Status::kComplete) ENCORE_CHECK(same(hello, whole), "what follows is nothing");
  }
  const Status behind = tls::parse_client_hello(input + std::string(8, '\x16'), whole);
  ENCORE_CHECK(settled == Status::kIncomplete || behind == settled, "nor does more of it");
  return 0;
}
