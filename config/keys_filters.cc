// Keys of [filters].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr double kHour = 3600 * kSecond;

constexpr std::array<std::string_view, 2> kHashes = {"xxh3", "sha1-fields20"};

constexpr std::array kFiltersKeys = {
    bound<&Filters::publish>(
        {.name = "publish",
         .kind = Kind::kTextList,
         .doc = "What is published. `changed`: of each hour, the URLs whose content changed in it "
                "as this cache saw it. `resident`: the URLs whose responses it holds.",
         .range = {.min = 0, .max = 2},
         .apply = Apply::kRestart,
         .accepted = "\"changed\", \"resident\"",
         .item_check = check_published}),
    bound<&Filters::path>(
        {.name = "path",
         .doc = "The path on proxy listeners below which it is found, on every host that a "
                "reverse listener answers for, and where a forward listener is asked itself: by "
                "its address and port, or by a name of `admin.allow_hosts`. Empty: on the admin "
                "listener alone.",
         .accepted = "a path that starts with \"/\" and does not end with it, or \"\"",
         .item_check = check_folder_or_empty}),
    bound<&Filters::allow_clients>({.name = "allow_clients",
                                    .kind = Kind::kTextList,
                                    .doc = "Who gets it from proxy listeners; others get 403.",
                                    .range = {.min = 0, .max = 4096},
                                    .accepted = "addresses and blocks, as \"10.0.0.0/8\"",
                                    .item_check = check_parsed<CidrText>}),
    bound<&Filters::keep>({.name = "keep",
                           .kind = Kind::kDuration,
                           .doc = "For how long the hours that are over are kept, rounded up to "
                                  "whole ones; with `state.directory`, also over a restart.",
                           .range = {.min = kHour, .max = 31 * kDay},
                           .apply = Apply::kRestart}),
    bound<&Filters::capacity>(
        {.name = "capacity",
         .kind = Kind::kInteger,
         .doc = "URLs that may change in an hour at the rate `fpr`. With more, the rate is higher; "
                "what is published says how high.",
         .range = {.min = 1, .max = 1e8},
         .apply = Apply::kRestart}),
    bound<&Filters::fpr>({.name = "fpr",
                          .kind = Kind::kReal,
                          .doc = "The false-positive rate of a filter that holds `capacity` URLs.",
                          .range = {.min = 1e-9, .max = 0.5},
                          .apply = Apply::kRestart}),
    bound<&Filters::hash>(
        {.name = "hash",
         .kind = Kind::kChoice,
         .doc = "What the URLs are hashed with, without a seed: `xxh3`, or the fields of 20 bits "
                "of SHA-1 that a script of ten lines can do as well, for filters of up to 2^20 "
                "bits (109,000 URLs at 1 %).",
         .apply = Apply::kRestart,
         .choices = kHashes}),
    bound<&Filters::resident_capacity>(
        {.name = "resident_capacity",
         .kind = Kind::kInteger,
         .doc =
             "Responses that `resident` is made for at the rate `fpr`; it takes four bits for "
             "each of the filter's. 0: one for each 16 KiB of `cache.memory`; from 2 GiB on that "
             "is more than `sha1-fields20` reaches at 1 %, and a number is needed.",
         .range = {.min = 1, .max = 4e8},
         .zero_is_off = true,
         .apply = Apply::kRestart}),
    bound<&Filters::squid_digest>(
        {.name = "squid_digest",
         .kind = Kind::kBool,
         .doc = "Whether proxy listeners answer `/squid-internal-periodic/store_digest`, on the "
                "hosts of `path`, with the digest of `resident`: what a Squid asks of a sibling "
                "with `digest`."}),
};

}  // namespace

std::span<const Key> filters_keys() { return kFiltersKeys; }

}  // namespace encore::config
