// Keys of [filters].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr double kHour = 3600 * kSecond;

constexpr std::array<std::string_view, 2> kFilterHashes = {"xxh3", "sha1-fields20"};

constexpr std::array kFiltersKeys = {
    bound<&Filters::publish>({.name = "publish",
                              .kind = Kind::kTextList,
                              .doc = "Published filters. `changed`: URLs whose content changed in "
                                     "an hour. `resident`: URLs with a stored response.",
                              .range = {.min = 0, .max = 2},
                              .apply = Apply::kUpgrade,
                              .not_reloaded = "published filters are made at the start",
                              .accepted = "\"changed\", \"resident\"",
                              .item_check = check_published}),
    bound<&Filters::path>(
        {.name = "path",
         .doc = "Path on proxy listeners: on every host of a reverse listener, under a forward "
                "listener's own names. Empty: admin listener only.",
         .accepted = "a path that starts with \"/\" and does not end with it, or \"\"",
         .item_check = check_folder_or_empty}),
    bound<&Filters::allow_clients>(
        {.name = "allow_clients",
         .kind = Kind::kTextList,
         .doc = "Clients that get filters from proxy listeners; others get 403.",
         .range = {.min = 0, .max = 4096},
         .accepted = "addresses and blocks, as \"10.0.0.0/8\"",
         .item_check = check_parsed<CidrText>}),
    bound<&Filters::keep>(
        {.name = "keep",
         .kind = Kind::kDuration,
         .doc = "How long past hours are kept, rounded up; with `state.directory` over restarts.",
         .range = {.min = kHour, .max = 31 * kDay},
         .apply = Apply::kUpgrade,
         .not_reloaded = "published filters are made at the start"}),
    bound<&Filters::capacity>({.name = "capacity",
                               .kind = Kind::kInteger,
                               .doc = "Changed URLs per hour at the rate `fpr`. Beyond it the rate "
                                      "is higher, and published.",
                               .range = {.min = 1, .max = 1e8},
                               .apply = Apply::kUpgrade,
                               .not_reloaded = "a published filter keeps its size"}),
    bound<&Filters::fpr>({.name = "fpr",
                          .kind = Kind::kReal,
                          .doc = "False-positive rate at `capacity`.",
                          .range = {.min = 1e-9, .max = 0.5},
                          .apply = Apply::kUpgrade,
                          .not_reloaded = "a published filter keeps its size"}),
    bound<&Filters::hash>(
        {.name = "hash",
         .kind = Kind::kChoice,
         .doc = "Hash of the URLs, without a seed: `xxh3`, or `sha1-fields20` for simple scripts, "
                "with at most 2^20 bits (109,000 URLs at 1 %).",
         .apply = Apply::kUpgrade,
         .not_reloaded = "a published filter keeps its hash",
         .choices = kFilterHashes}),
    bound<&Filters::resident_capacity>(
        {.name = "resident_capacity",
         .kind = Kind::kInteger,
         .doc =
             "Responses for `resident` at the rate `fpr`, with four bits per bit of the filter. 0: "
             "one per 16 KiB of `cache.memory`; with `sha1-fields20` set a number from 2 GiB on.",
         .range = {.min = 1, .max = 4e8},
         .zero_is_off = true,
         .apply = Apply::kUpgrade,
         .not_reloaded = "a published filter keeps its size"}),
    bound<&Filters::squid_digest>(
        {.name = "squid_digest",
         .kind = Kind::kBool,
         .doc = "Serve the digest of `resident` at `/squid-internal-periodic/store_digest` for a "
                "Squid with this sibling."}),
};

}  // namespace

std::span<const Key> filters_keys() { return kFiltersKeys; }

}  // namespace encore::config
