// Keys of [cache], [[disk]] and [admission].
#include <array>

#include "cache/disk_layout.h"
#include "cache/options.h"
#include "cache/probation_samples.h"
#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 4> kLayouts = {"classic", "partitioned", "blocked", "split"};
constexpr std::array<std::string_view, 6> kHashes = {"xxh3", "murmur3", "siphash",
                                                     "md5",  "sha1",    "sha512"};
constexpr std::array<std::string_view, 3> kSwitches = {"auto", "on", "off"};
constexpr std::array<std::string_view, 3> kSetCookie = {"strip", "refuse", "store"};

constexpr std::array kCacheKeys = {
    bound<&Cache::memory_bytes>({.name = "memory",
                                 .kind = Kind::kBytes,
                                 .doc = "Memory for stored objects, all told: keys, heads, bodies, "
                                        "index. The filter and connections come on top. A reload "
                                        "can lower it, which evicts in steps, or raise it to eight "
                                        "times its value at the start, and to 10GiB in any case; "
                                        "more needs a restart.",
                                 .range = {.min = 64.0 * kKiB, .max = 64.0 * kTiB}}),
    bound<&Cache::shards>({.name = "shards",
                           .kind = Kind::kInteger,
                           .doc = "Parts of the cache, each under its own lock with its own pair "
                                  "of filters.",
                           .range = {.min = 1, .max = 256},
                           .power_of_two = true,
                           .apply = Apply::kRestart}),
    bound<&Cache::eviction>({.name = "eviction",
                             .kind = Kind::kChoice,
                             .doc = "What leaves a full cache. `sieve`, `lru` and `fifo` keep "
                                    "nothing beside an entry; `lfu`, `gdsf` and `lhd` keep 24 "
                                    "bytes for each, `w-tinylfu` 16 to 32; `s3-fifo`, `2q` and "
                                    "`arc` remember up to as many keys that have left, at some 80 "
                                    "bytes each. None of this counts against `cache.memory`. After "
                                    "a reload what is stored stays; what is used moves to the new "
                                    "policy, and what is not leaves first.",
                             .choices = cache::kOnlineEvictionNames}),
    bound<&Cache::max_object_bytes>({.name = "max_object",
                                     .kind = Kind::kBytes,
                                     .doc = "Larger objects are not stored. Never more than an "
                                            "eighth of `cache.memory`, or of all disks where there "
                                            "are any, whatever is written here: what is larger "
                                            "than an eighth of the memory lies on disk alone, in "
                                            "parts. Segments of less than 4 MiB take no parts: "
                                            "they bound it. `--check-config` prints what holds.",
                                     .range = {.min = 1.0 * kKiB, .max = 64.0 * kTiB}}),
    bound<&Cache::collapse>({.name = "collapse",
                             .kind = Kind::kBool,
                             .doc = "Requests for an object that is being fetched wait for that "
                                    "one transfer instead of asking the origin too."}),
    bound<&Cache::collapse_buffer_bytes>(
        {.name = "collapse_buffer",
         .kind = Kind::kBytes,
         .doc = "A request may join a transfer as long as its first byte is still held: up to so "
                "much of the body.",
         .range = {.min = 0, .max = 1.0 * kGiB}}),
    bound<&Cache::uncacheable_memory>(
        {.name = "uncacheable_memory",
         .kind = Kind::kDuration,
         .doc = "How long it is remembered that a response may not be shared, so that requests for "
                "it no longer wait for one another.",
         .range = {.min = 0, .max = kDay}}),
    bound<&Cache::background_finish_bytes>(
        {.name = "background_finish",
         .kind = Kind::kBytes,
         .doc = "A transfer that is being stored goes on without clients if no more than this is "
                "missing; else it ends, and nothing is stored.",
         .range = {.min = 0, .max = 64.0 * kTiB}}),
    bound<&Cache::range_fetch_max_bytes>(
        {.name = "range_fetch_max",
         .kind = Kind::kBytes,
         .doc =
             "Where a Range request is the one that gets an object stored, the whole object is "
             "fetched if it is no larger than this; of larger ones the parts are stored. One that "
             "does not say its length is fetched unless the range begins behind this and the "
             "origin serves ranges.",
         .range = {.min = 0, .max = 64.0 * kTiB}}),
    bound<&Cache::variants_max>({.name = "variants_max",
                                 .kind = Kind::kInteger,
                                 .doc = "Stored responses of one URI that differ by `Vary`; the "
                                        "oldest goes.",
                                 .range = {.min = 1, .max = cache::kVariantsMax}}),
    bound<&Cache::query_sort>({.name = "query_sort",
                               .kind = Kind::kBool,
                               .doc = "The order of query parameters does not make another object "
                                      "(reverse listeners); origins get them sorted."}),
    bound<&Cache::query_drop>({.name = "query_drop",
                               .kind = Kind::kTextList,
                               .doc =
                                   "Query parameters that do not make another object (reverse "
                                   "listeners), and that origins do not get: `\"utm_source\"`, or "
                                   "`\"utm_*\"` for all that begin so.",
                               .range = {.min = 0, .max = 256},
                               .accepted = "names of parameters, with a * at the end or not",
                               .item_check = check_query_name}),
    bound<&Cache::normalise_accept_encoding>(
        {.name = "normalise_accept_encoding",
         .kind = Kind::kChoice,
         .doc = "`Accept-Encoding` is reduced to what matters (br, gzip, zstd) before it chooses a "
                "variant and is sent. `auto`: on in reverse mode, off in forward mode.",
         .choices = kSwitches}),
    bound<&Cache::heuristic_fraction>(
        {.name = "heuristic_fraction",
         .kind = Kind::kReal,
         .doc = "Freshness of a response that states none: this share of the time since it was "
                "last modified (RFC 9111 4.2.2). 0: none.",
         .range = {.min = 0, .max = 1}}),
    bound<&Cache::heuristic_max>({.name = "heuristic_max",
                                  .kind = Kind::kDuration,
                                  .doc = "But never more than this.",
                                  .range = {.min = 0, .max = 365 * kDay}}),
    bound<&Cache::heuristic_with_cookie>(
        {.name = "heuristic_with_cookie",
         .kind = Kind::kBool,
         .doc = "Guess the freshness of responses to requests with `Cookie`, too, which are often "
                "made for one user. false: such a response is validated before every use, unless "
                "it states its freshness."}),
    bound<&Cache::keep_stale>({.name = "keep_stale",
                               .kind = Kind::kDuration,
                               .doc = "How long beyond its freshness an object is kept, to be "
                                      "validated or served stale.",
                               .range = {.min = 0, .max = 365 * kDay}}),
    bound<&Cache::serve_stale_on_error>(
        {.name = "serve_stale_on_error",
         .kind = Kind::kBool,
         .doc = "A stale object that was fresh once is served when the origin cannot be reached, "
                "unless it forbids that (RFC 9111 4.2.4)."}),
    bound<&Cache::stale_while_revalidate>(
        {.name = "stale_while_revalidate",
         .kind = Kind::kDuration,
         .doc = "RFC 5861, for responses that do not say it themselves and were fresh once.",
         .range = {.min = 0, .max = 365 * kDay}}),
    bound<&Cache::stale_if_error>({.name = "stale_if_error",
                                   .kind = Kind::kDuration,
                                   .doc = "RFC 5861, for responses that do not say it themselves "
                                          "and were fresh once.",
                                   .range = {.min = 0, .max = 365 * kDay}}),
    bound<&Cache::targets>({.name = "targets",
                            .kind = Kind::kTextList,
                            .doc = "Targeted cache-control fields (RFC 9213) that reverse "
                                   "listeners obey, most specific first.",
                            .range = {.min = 0, .max = 16},
                            .accepted = "names of fields",
                            .item_check = check_field_name}),
    bound<&Cache::ignore_client_reload>(
        {.name = "ignore_client_reload",
         .kind = Kind::kBool,
         .doc = "`Cache-Control: no-cache` and the like in requests to reverse listeners have no "
                "effect: clients cannot make the origin work."}),
    bound<&Cache::set_cookie>(
        {.name = "set_cookie",
         .kind = Kind::kChoice,
         .doc =
             "What becomes of a response with `Set-Cookie` that may be stored otherwise. "
             "`strip`: it is stored without its cookies; with them only where the origin marks "
             "it for shared caches (`public`, `s-maxage`, a targeted field). Not stored is the "
             "answer to a request with `Cookie`, and what has heuristic freshness alone. "
             "`refuse`: it is not stored. `store`: it is stored as it came, cookies and all, as "
             "RFC 9111 7.3 lets a cache do. Whatever is chosen, a cookie never goes to a request "
             "that merely waited for another's response, and none of a validation is stored.",
         .choices = kSetCookie}),
    bound<&Cache::cache_status_key>({.name = "cache_status_key",
                                     .kind = Kind::kBool,
                                     .doc = "`Cache-Status` shows the cache key."}),
    bound<&Cache::cache_status_admission>(
        {.name = "cache_status_admission",
         .kind = Kind::kBool,
         .doc = "`Cache-Status` says whether a response that may be stored was admitted: `stored`, "
                "and why (`detail=first-request`, ...). Where it does not, what the origin is "
                "asked does not depend on it either: `Range` and conditions go to it as they came, "
                "also for what would be stored whole. That costs hits."}),
    bound<&Cache::tag_fields>({.name = "tag_fields",
                               .kind = Kind::kTextList,
                               .doc = "Response fields that carry tags for purging.",
                               .range = {.min = 0, .max = 16},
                               .accepted = "names of fields",
                               .item_check = check_field_name}),
    bound<&Cache::strip_tags>({.name = "strip_tags",
                               .kind = Kind::kBool,
                               .doc = "These fields are not shown to clients."}),
    bound<&Cache::purge_at_start>(
        {.name = "purge_at_start",
         .kind = Kind::kBool,
         .doc = "Purge all that the disks hold at every start, for sites that are edited while the "
                "proxy is down. Without disks a start finds nothing anyway.",
         .apply = Apply::kRestart}),
    bound<&Cache::mean_object_bytes>(
        {.name = "mean_object",
         .kind = Kind::kBytes,
         .doc = "How large an object is on average, key, head and body: what is reckoned with "
                "before any is there, for the window of admission behind disks "
                "(`admission.capacity`) and where `--check-config` says what memory and disks can "
                "hold.",
         .range = {.min = 64, .max = 1.0 * kTiB}}),
    bound<&Cache::disk_write_rate>(
        {.name = "disk_write_rate",
         .kind = Kind::kBytes,
         .doc = "Bytes a second that are written to the disks for good, all of them together. What "
                "would be more stays in memory alone. What is moved on in a reclaimed segment "
                "counts, but is never held back. 0: no limit.",
         .range = {.min = 1, .max = static_cast<double>(cache::kWriteRateMax)},
         .zero_is_off = true,
         .apply = Apply::kRestart}),
    bound<&Cache::disk_reinsert>(
        {.name = "disk_reinsert",
         .kind = Kind::kInteger,
         .doc = "Percent of a disk's segment that are moved on at most, for having been asked for, "
                "when the segment is reclaimed: more hits for more writes.",
         .range = {.min = 0, .max = cache::kReinsertPercentMax},
         .apply = Apply::kRestart}),
    bound<&Cache::disk_life_min>(
        {.name = "disk_life_min",
         .kind = Kind::kDuration,
         .doc = "What is of no use any more sooner than this is not written to disk.",
         .range = {.min = 0, .max = 365 * kDay},
         .apply = Apply::kRestart}),
};

// More than any device is rated for.
constexpr std::uint64_t kEnduranceMax = 1024 * 1024 * kTiB;

constexpr std::array kDiskKeys = {
    bound<&Disk::path>({.name = "path",
                        .doc = "A file, made where there is none, or a block device. A relative "
                               "name is one in the directory in which encore was started. What "
                               "holds anything but a disk of encore's is refused.",
                        .required = true,
                        .apply = Apply::kRestart,
                        .accepted = "a file name",
                        .item_check = check_disk_name}),
    bound<&Disk::size_bytes>({.name = "size",
                              .kind = Kind::kBytes,
                              .doc = "What it takes, all told; taken at once. A disk that has "
                                     "another size is fitted to this one at a start, and keeps "
                                     "what it has room for.",
                              .range = {.min = static_cast<double>(cache::kDiskBytesMin),
                                        .max = static_cast<double>(cache::kDiskBytesMax)},
                              .required = true,
                              .apply = Apply::kRestart}),
    bound<&Disk::segment_bytes>(
        {.name = "segment",
         .kind = Kind::kBytes,
         .doc = "What is written, and later reclaimed, as a whole; at least 4 of them make a disk. "
                "It counts when a disk is made: one that is there keeps its own. 0: 64 to 127 "
                "of them, as a power of two allows, but at least 4MiB where that leaves 32, for "
                "what is smaller bounds the objects on the disk; at most 64MiB, and 256MiB beyond "
                "4TiB.",
         .range = {.min = static_cast<double>(cache::kSegmentBytesMin),
                   .max = static_cast<double>(cache::kSegmentBytesMax)},
         .zero_is_off = true,
         .power_of_two = true,
         .apply = Apply::kRestart}),
    bound<&Disk::endurance_bytes>(
        {.name = "endurance",
         .kind = Kind::kBytes,
         .doc = "How much its maker rates the device to be written in its life (TBW), as `600TB`. "
                "`--check-config` says how many years that lasts at the rate of the disk that is "
                "there; nothing else depends on it. 0: not known.",
         .range = {.min = static_cast<double>(kGiB), .max = static_cast<double>(kEnduranceMax)},
         .zero_is_off = true}),
};

constexpr std::array kAdmissionKeys = {
    bound<&Admission::policy>(
        {.name = "policy",
         .kind = Kind::kChoice,
         .doc =
             "What enters the cache. `second-hit`: an object asked for a second time, as a "
             "rotating pair of Bloom filters remembers. `exact-second-hit`: the same by exact "
             "sets, which cost more memory. `nth-hit`: asked for `min_requests` times, by the "
             "same filters. `probability`: every request with `probability`. "
             "`size-threshold`: objects up to `size_threshold`. `tinylfu`: while the cache is "
             "full, what was asked for more often lately than the object that it would push "
             "out. `adaptsize`: with a probability of exp(-size/c), where c is tuned to the "
             "traffic. `probation`, for `[[disk]]`: what comes waits in memory and is remembered "
             "when it leaves it; what is asked for again after that is written to disk, so that "
             "a burst of requests writes nothing; the default with `[[disk]]`, unless `hash` "
             "or `refresh` are not as they are by default. `always`, `never`. A response that does "
             "not say "
             "its size counts as the "
             "largest that may be stored.",
         .choices = cache::kAdmissionNames}),
    bound<&Admission::min_requests>(
        {.name = "min_requests",
         .kind = Kind::kInteger,
         .doc = "`nth-hit`: the request that gets an object stored. Each one before it is an "
                "insertion that counts against `capacity`; 2 is `second-hit`.",
         .range = {.min = 2, .max = cache::kMinRequestsMax}}),
    bound<&Admission::probability>(
        {.name = "probability",
         .kind = Kind::kReal,
         .doc = "`probability`: that of each request to get its object stored.",
         .range = {.min = 1e-9, .max = 1}}),
    bound<&Admission::size_threshold_bytes>(
        {.name = "size_threshold",
         .kind = Kind::kBytes,
         .doc = "`size-threshold`: larger objects are not stored.",
         .range = {.min = 1, .max = 64.0 * kTiB}}),
    bound<&Admission::write_cost>(
        {.name = "write_cost",
         .kind = Kind::kReal,
         .doc = "`probation`: what a byte written to disk costs, in bytes fetched from an origin. "
                "Small samples of the traffic try how long a key is best remembered, and the "
                "cheapest is followed: 0 goes for hits alone, 1 and more spares the disk.",
         .range = {.min = 0, .max = cache::ProbationSamples::kWriteCostMax}}),
    bound<&Admission::fill>(
        {.name = "fill",
         .kind = Kind::kBool,
         .doc = "`probation`: until a disk was full for the first time, all that comes is written "
                "to it as well: an empty place costs nothing. False: only what is asked for "
                "again, from the start."}),
    bound<&Admission::capacity>(
        {.name = "capacity",
         .kind = Kind::kInteger,
         .doc = "Insertions after which the pair rotates, over all shards: a key is remembered for "
                "at least so many, and for at most twice as many, later ones. 0: 1000000; with "
                "`[[disk]]` 3.5 for each object that memory and disks can hold "
                "(`cache.mean_object`), and with `nth-hit` as many for each request below "
                "`min_requests`, and with `probation` two for each 8KiB of the disks, a bound "
                "that is hardly ever reached; with `bits` the point at which a filter is half "
                "full. `tinylfu`: "
                "requests after which all counts are halved, `adaptsize`: requests between two "
                "tunings, 1000000 where this is 0.",
         .range = {.min = 1, .max = 1e12},
         .zero_is_off = true}),
    bound<&Admission::fpr>(
        {.name = "fpr",
         .kind = Kind::kReal,
         .doc = "False positives of the pair at their worst in a cycle: the share of objects asked "
                "for once that are stored all the same. The filter's size follows from it and "
                "`capacity`. Not together with `bits`.",
         .range = {.min = 1e-9, .max = 0.5},
         .zero_is_off = true}),
    bound<&Admission::bits>({.name = "bits",
                             .kind = Kind::kInteger,
                             .doc = "Bits of one generation over all shards, instead of `fpr`. 0: "
                                    "they follow from `capacity` and `fpr`.",
                             .range = {.min = 512, .max = 0x1p42},
                             .zero_is_off = true}),
    bound<&Admission::hashes>(
        {.name = "hashes",
         .kind = Kind::kInteger,
         .doc = "Bits set for a key (k). 0: the best for the layout. Another k than 8 without a "
                "`layout` means the layout `classic`, for `split` always has 8.",
         .range = {.min = 1, .max = kConfiguredHashesMax},
         .zero_is_off = true}),
    bound<&Admission::layout>(
        {.name = "layout",
         .kind = Kind::kChoice,
         .doc = "Where a key's bits lie: anywhere (`classic`), one in each of k slices "
                "(`partitioned`), in one 64-byte line (`blocked`), one in each of a line's eight "
                "words (`split`, the fastest).",
         .choices = kLayouts}),
    bound<&Admission::hash>({.name = "hash",
                             .kind = Kind::kChoice,
                             .doc = "The hash family. `siphash` where clients are hostile; the "
                                    "digests are for study.",
                             .choices = kHashes}),
    bound<&Admission::seed>({.name = "seed",
                             .doc = "The filter's secret, in hex. Empty: random, and kept with the "
                                    "state. Proxies that merge filters need the same.",
                             .secret = true,
                             .accepted = "1 to 32 hex digits or \"\"",
                             .item_check = check_seed}),
    bound<&Admission::rotate_after>(
        {.name = "rotate_after",
         .kind = Kind::kDuration,
         .doc = "The pair also rotates after this time. 0: by `capacity` alone.",
         .range = {.min = kSecond, .max = 365 * kDay},
         .zero_is_off = true}),
    bound<&Admission::refresh>({.name = "refresh",
                                .kind = Kind::kBool,
                                .doc = "A key found in the older generation only is inserted in "
                                       "the current one too, so that what is asked for again and "
                                       "again is not forgotten."}),
    bound<&Admission::shadow_sample>(
        {.name = "shadow_sample",
         .kind = Kind::kInteger,
         .doc = "One key in so many is also kept exactly, to measure the false-positive rate while "
                "running. 1: every key. 0: none is, and nothing is measured.",
         .range = {.min = 1, .max = 65536},
         .zero_is_off = true,
         .power_of_two = true}),
    bound<&Admission::adopted_memory_bytes>(
        {.name = "adopted_memory",
         .kind = Kind::kBytes,
         .doc = "What the filters adopted from other caches (`POST /filter/adopt`, "
                "`--adopt-from`) may take in all; a saved form may have 2 MiB more. 0: none is "
                "adopted.",
         .range = {.min = 1.0 * kMiB, .max = 1.0 * kTiB},
         .zero_is_off = true}),
};

}  // namespace

std::span<const Key> cache_keys() { return kCacheKeys; }
std::span<const Key> disk_keys() { return kDiskKeys; }
std::span<const Key> admission_keys() { return kAdmissionKeys; }

}  // namespace encore::config
