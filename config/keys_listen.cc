// Keys of [[listen]].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 2> kModes = {"forward", "reverse"};
constexpr std::array<std::string_view, 2> kTrustedFields = {"x-forwarded-for", "forwarded"};
constexpr std::array<std::string_view, 5> kForwardedFields = {"auto", "off", "x-forwarded",
                                                              "forwarded", "both"};
constexpr Range kListed = {.min = 0, .max = 4096};
constexpr std::string_view kBlocks = "addresses and blocks, as \"10.0.0.0/8\"";

constexpr std::array kListenKeys = {
    bound<&Listen::address>({.name = "address",
                             .doc = "Where clients connect: a numeric address and a port.",
                             .apply = Apply::kRestart,
                             .accepted = "\"127.0.0.1:3128\", \"[::1]:3128\" or \"*:3128\"",
                             .item_check = check_parsed<EndpointText>}),
    bound<&Listen::mode>({.name = "mode",
                          .kind = Kind::kChoice,
                          .doc = "`forward`: a proxy that clients are told to use (absolute-form "
                                 "and `CONNECT`). `reverse`: stands before the `[[origin]]`s.",
                          .apply = Apply::kRestart,
                          .choices = kModes}),
    bound<&Listen::trusted_proxies>(
        {.name = "trusted_proxies",
         .kind = Kind::kTextList,
         .doc = "Proxies of one's own in front of this listener. What they say of their clients "
                "(`trusted_field`, `X-Forwarded-Proto`, a PROXY header) is believed; of nobody "
                "else it is. The client is the first address, from the right, that is none of "
                "them. A loopback address that another machine names is not believed.",
         .range = kListed,
         .accepted = kBlocks,
         .item_check = check_parsed<CidrText>}),
    bound<&Listen::trusted_field>(
        {.name = "trusted_field",
         .kind = Kind::kChoice,
         .doc = "The field in which the trusted proxies name their clients. Only the one that they "
                "write themselves: most pass the other one on as a client has sent it.",
         .choices = kTrustedFields}),
    bound<&Listen::proxy_protocol>(
        {.name = "proxy_protocol",
         .kind = Kind::kBool,
         .doc = "Each connection begins with a PROXY header, version 1 or 2, which says who the "
                "client is; one that does not is closed. Accepted of `trusted_proxies` only, or, "
                "where there are none, of everybody who can connect: then the listener must be "
                "out of clients' reach."}),
    bound<&Listen::forwarded>(
        {.name = "forwarded",
         .kind = Kind::kChoice,
         .doc = "What origins are told of the client: `x-forwarded` (`X-Forwarded-For`, `-Proto`, "
                "`-Host`), `forwarded` (RFC 7239), `both`, or nothing (`off`). `auto`: both behind "
                "a reverse listener, nothing behind a forward one. It is written of what is known; "
                "what a client says itself never goes on.",
         .choices = kForwardedFields}),
    bound<&Listen::via>(
        {.name = "via",
         .kind = Kind::kBool,
         .doc = "Whether requests and responses carry our `Via`. Without it a request that goes in "
                "a circle is not noticed by it, and goes round until a limit ends it."}),
    bound<&Listen::cache_status>({.name = "cache_status",
                                  .kind = Kind::kBool,
                                  .doc = "Whether responses carry our `Cache-Status`."}),
};

}  // namespace

std::span<const Key> listen_keys() { return kListenKeys; }

}  // namespace encore::config
