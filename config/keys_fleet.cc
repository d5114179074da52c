// Keys of [fleet].
#include <array>

#include "config/keys.h"
#include "config/redis_url.h"

namespace encore::config {
namespace {

constexpr std::string_view kOpenedAtTheStart = "its connections were opened at the start";

Result<std::string> check_node_name(std::string_view text) {
  if (!text.empty() && !is_node_name(text)) return fail("is not a node's name");
  return std::string(text);
}

constexpr std::array kFleetKeys = {
    bound<&Fleet::purges>({.name = "purges",
                           .doc = "Redis engine (6.2 or later) that carries purges between nodes. "
                                  "Never shown. Empty: none.",
                           .secret = true,
                           .apply = Apply::kUpgrade,
                           .not_reloaded = kOpenedAtTheStart,
                           .accepted =
                               "redis://[user:password@]host[:port][/database][?stream=NAME], "
                               "unix:///path/of.sock[?db=N][&stream=NAME] or \"\"",
                           .item_check = check_parsed<OptionalRedisUrlText>}),
    bound<&Fleet::password_file>(
        {.name = "password_file",
         .doc = "File with its password in one line, mode 0600 or 0640. Empty: that in `purges`.",
         .apply = Apply::kUpgrade,
         .not_reloaded = kOpenedAtTheStart,
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Fleet::node>({.name = "node",
                         .doc = "Unique name of this node. Empty: the host name.",
                         .apply = Apply::kUpgrade,
                         .not_reloaded = kOpenedAtTheStart,
                         .accepted = "1 to 64 letters, digits and ._:- or \"\"",
                         .item_check = check_node_name}),
    bound<&Fleet::keep>({.name = "keep",
                         .kind = Kind::kDuration,
                         .doc = "Time for which the engine keeps purges. After a longer absence "
                                "all objects are stale.",
                         .range = {.min = 10 * kSecond, .max = 365 * kDay}}),
    bound<&Fleet::wait>({.name = "wait",
                         .kind = Kind::kDuration,
                         .doc = "Longest wait of a purge's response for the other nodes, and of a "
                                "start for the engine.",
                         .range = {.min = 1e6, .max = 60 * kSecond}}),
    bound<&Fleet::late>({.name = "late",
                         .kind = Kind::kDuration,
                         .doc = "Lag of purges after which `/readyz` is 503. 0: never.",
                         .range = {.min = kSecond, .max = 365 * kDay},
                         .zero_is_off = true}),
    bound<&Fleet::adopt>({.name = "adopt",
                          .kind = Kind::kBool,
                          .doc = "Adopt the admission filter of another node at a start with an "
                                 "empty one, and give this node's."}),
};

}  // namespace

std::span<const Key> fleet_keys() { return kFleetKeys; }

}  // namespace encore::config
