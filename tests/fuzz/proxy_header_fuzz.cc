// PROXY headers: whatever the bytes, no prefix of them is taken for something else than the whole,
// a header is no longer than its bytes, and what follows it changes nothing.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "proxy/net/proxy_header.h"

using namespace encore;
using Status = net::ProxyHeaderStatus;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  net::ProxyHeader whole;
  const Status settled = net::parse_proxy_header(input, whole);
  if (settled == Status::kComplete) {
    ENCORE_CHECK(whole.size != 0 && whole.size <= size, "a header lies in its bytes");
    ENCORE_CHECK(whole.size <= net::kProxyHeaderBytesMax, "a header has a limit");
  }
  bool seen = false;
  for (std::size_t cut = 0; cut <= size; ++cut) {
    net::ProxyHeader header;
    const Status status = net::parse_proxy_header(input.substr(0, cut), header);
    ENCORE_CHECK(!seen || status == settled, "what is settled stays so");
    if (status == Status::kIncomplete) continue;
    ENCORE_CHECK(status == settled, "what is settled is so of the whole");
    seen = true;
    if (status != Status::kComplete) continue;
    ENCORE_CHECK(header.size == whole.size && cut >= whole.size, "it is taken when it is there");
    ENCORE_CHECK(header.source == whole.source && header.secure == whole.secure,
                 "what follows changes nothing");
  }
  return 0;
}
