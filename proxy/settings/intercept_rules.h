// InterceptRules: which CONNECTs of a forward listener are decrypted ([intercept]). Pure: the same
// facts give the same verdict. Immutable, thread-safe. Why only hosts that are named:
// docs/decisions/0260.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "proxy/tls/client_hello.h"

namespace encore::server {

//  enumerator      name in logs        when it is known
#define ENCORE_SPLICES(X)                         \
  /* It is not spliced: it is decrypted. */       \
  X(kNone, "intercepted")                         \
  /* By the CONNECT alone. */                     \
  X(kPort, "other-port")                          \
  X(kAddress, "address")                          \
  X(kOwn, "own-listener")                         \
  X(kNever, "never")                              \
  X(kNotNamed, "not-named")                       \
  /* By what is known of client and authority. */ \
  X(kRejected, "client-rejects")                  \
  X(kNoCertificate, "no-certificate")             \
  /* By what the client said then. */             \
  X(kSilent, "silent")                            \
  X(kNotTls, "not-tls")                           \
  X(kMalformed, "malformed")                      \
  X(kNoName, "no-server-name")                    \
  X(kOtherName, "other-server-name")              \
  X(kOldVersion, "old-version")                   \
  X(kOtherProtocol, "other-protocol")

// Why a tunnel is left as it is.
enum class Splice : std::uint8_t {
#define ENCORE_ENUMERATOR(id, name) id,
  ENCORE_SPLICES(ENCORE_ENUMERATOR)
#undef ENCORE_ENUMERATOR
};

inline constexpr std::array kSpliceNames = {
#define ENCORE_NAME(id, name) std::string_view(name),
    ENCORE_SPLICES(ENCORE_NAME)
#undef ENCORE_NAME
};

constexpr std::string_view to_string(Splice splice) {
  return kSpliceNames.at(static_cast<std::size_t>(splice));
}

// A CONNECT, before it is answered.
struct ConnectFacts {
  std::string_view host;  // lower case, an IPv6 address without brackets
  std::uint16_t port = 0;
  bool is_own = false;       // it leads to a listener of ours
  bool is_rejected = false;  // this client does not take our certificate for it
};

class InterceptRules {
 public:
  explicit InterceptRules(const config::Intercept& intercept);

  Splice at_connect(const ConnectFacts& connect) const;
  // `connected` is the CONNECT's host. REQUIRES: the status is not kIncomplete; `hello` is set
  // where it is complete.
  static Splice at_hello(std::string_view connected, tls::HelloStatus status,
                         const tls::ClientHello& hello);

 private:
  std::vector<std::string> hosts_;  // patterns
  std::vector<std::string> never_;
  std::vector<std::uint64_t> ports_;
};

}  // namespace encore::server
