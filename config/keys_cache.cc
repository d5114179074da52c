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
    bound<&Cache::memory_bytes>(
        {.name = "memory",
         .kind = Kind::kBytes,
         .doc = "Memory for cached objects with keys, heads, bodies and index, without filter and "
                "connections. A reload may lower it, or raise it to 10GiB or eight times its value "
                "at the start.",
         .range = {.min = 64.0 * kKiB, .max = 64.0 * kTiB}}),
    bound<&Cache::shards>({.name = "shards",
                           .kind = Kind::kInteger,
                           .doc = "Parts of the cache, each with a lock and a pair of filters.",
                           .range = {.min = 1, .max = 256},
                           .power_of_two = true,
                           .apply = Apply::kUpgrade,
                           .not_reloaded = "each key belongs to a shard"}),
    bound<&Cache::eviction>(
        {.name = "eviction",
         .kind = Kind::kChoice,
         .doc =
             "`sieve`, `lru` and `fifo` need no extra memory; `lfu` 4 bytes per entry, `gdsf` and "
             "`lhd` 24, `w-tinylfu` 16 to 32; `s3-fifo`, `2q` and `arc` 50 bytes for each of up to "
             "as "
             "many evicted keys, in addition to `cache.memory`. A reload keeps cached objects.",
         .choices = cache::kProxyEvictionNames}),
    bound<&Cache::max_object_bytes>(
        {.name = "max_object",
         .kind = Kind::kBytes,
         .doc = "Largest stored object: at most an eighth of `cache.memory`, or of all disks. "
                "Objects above an eighth of the memory lie on disk only, in parts. Segments below "
                "4 MiB limit it to their size. `--check-config` prints the effective value.",
         .range = {.min = 1.0 * kKiB, .max = 64.0 * kTiB}}),
    bound<&Cache::collapse>(
        {.name = "collapse",
         .kind = Kind::kBool,
         .doc = "Let requests for an object that is being fetched share that transfer."}),
    bound<&Cache::collapse_buffer_bytes>(
        {.name = "collapse_buffer",
         .kind = Kind::kBytes,
         .doc = "Bytes of a body within which a request may join its transfer.",
         .range = {.min = 0, .max = 1.0 * kGiB}}),
    bound<&Cache::uncacheable_memory>({.name = "uncacheable_memory",
                                       .kind = Kind::kDuration,
                                       .doc = "How long unshareable responses are remembered, so "
                                              "that requests for them do not wait for each other.",
                                       .range = {.min = 0, .max = kDay}}),
    bound<&Cache::background_finish_bytes>(
        {.name = "background_finish",
         .kind = Kind::kBytes,
         .doc = "Finish storing without clients if at most this much is missing.",
         .range = {.min = 0, .max = 64.0 * kTiB}}),
    bound<&Cache::range_fetch_max_bytes>(
        {.name = "range_fetch_max",
         .kind = Kind::kBytes,
         .doc = "Fetch the whole object for a Range request that stores it, up to this size; store "
                "parts of larger ones. Without a known length, fetch it unless the range begins "
                "beyond this size and the origin serves ranges.",
         .range = {.min = 0, .max = 64.0 * kTiB}}),
    bound<&Cache::variants_max>({.name = "variants_max",
                                 .kind = Kind::kInteger,
                                 .doc = "Stored variants (`Vary`) of a URL; the oldest is evicted.",
                                 .range = {.min = 1, .max = cache::kVariantsMax}}),
    bound<&Cache::query_sort>(
        {.name = "query_sort",
         .kind = Kind::kBool,
         .doc = "Sort query parameters, in key and request (reverse listeners)."}),
    bound<&Cache::query_drop>(
        {.name = "query_drop",
         .kind = Kind::kTextList,
         .doc = "Query parameters removed from key and request (reverse listeners).",
         .range = {.min = 0, .max = 256},
         .accepted = "names, as \"utm_source\" or \"utm_*\"",
         .item_check = check_query_name}),
    bound<&Cache::normalise_accept_encoding>(
        {.name = "normalise_accept_encoding",
         .kind = Kind::kChoice,
         .doc = "Reduce `Accept-Encoding` to br, gzip and zstd for variants and origins. `auto`: "
                "for reverse listeners only.",
         .choices = kSwitches}),
    bound<&Cache::heuristic_fraction>({.name = "heuristic_fraction",
                                       .kind = Kind::kReal,
                                       .doc = "Heuristic lifetime as a part of the time since "
                                              "`Last-Modified` (RFC 9111 4.2.2). 0: none.",
                                       .range = {.min = 0, .max = 1}}),
    bound<&Cache::heuristic_max>({.name = "heuristic_max",
                                  .kind = Kind::kDuration,
                                  .doc = "Longest heuristic lifetime.",
                                  .range = {.min = 0, .max = 365 * kDay}}),
    bound<&Cache::heuristic_with_cookie>(
        {.name = "heuristic_with_cookie",
         .kind = Kind::kBool,
         .doc = "Use heuristic freshness for requests with `Cookie`, too. false: validate such "
                "responses before every use, unless they state a lifetime."}),
    bound<&Cache::keep_stale>({.name = "keep_stale",
                               .kind = Kind::kDuration,
                               .doc = "How long stale objects are kept for validation or serving.",
                               .range = {.min = 0, .max = 365 * kDay}}),
    bound<&Cache::serve_stale_on_error>(
        {.name = "serve_stale_on_error",
         .kind = Kind::kBool,
         .doc = "Serve a stale object that was once fresh if the origin is unreachable, unless it "
                "forbids that (RFC 9111 4.2.4)."}),
    bound<&Cache::stale_while_revalidate>(
        {.name = "stale_while_revalidate",
         .kind = Kind::kDuration,
         .doc = "RFC 5861 default for responses that were once fresh and do not state it.",
         .range = {.min = 0, .max = 365 * kDay}}),
    bound<&Cache::stale_if_error>({.name = "stale_if_error",
                                   .kind = Kind::kDuration,
                                   .doc = "Likewise.",
                                   .range = {.min = 0, .max = 365 * kDay}}),
    bound<&Cache::targets>({.name = "targets",
                            .kind = Kind::kTextList,
                            .doc = "Targeted cache-control fields (RFC 9213) that reverse "
                                   "listeners obey, most specific first.",
                            .range = {.min = 0, .max = 16},
                            .accepted = "names of fields",
                            .item_check = check_field_name}),
    bound<&Cache::ignore_client_reload>({.name = "ignore_client_reload",
                                         .kind = Kind::kBool,
                                         .doc = "Ignore `Cache-Control: no-cache` and similar "
                                                "directives of requests to reverse listeners."}),
    bound<&Cache::set_cookie>(
        {.name = "set_cookie",
         .kind = Kind::kChoice,
         .doc = "Storable responses with `Set-Cookie`. `strip`: store without cookies; with them "
                "only if marked for shared caches (`public`, `s-maxage`, a targeted field); not "
                "after a request with `Cookie`, nor with heuristic freshness alone. `refuse`: do "
                "not store. `store`: store unchanged (RFC 9111 7.3). Collapsed requests and "
                "validations never share cookies.",
         .choices = kSetCookie}),
    bound<&Cache::cache_status_key>({.name = "cache_status_key",
                                     .kind = Kind::kBool,
                                     .doc = "Show the cache key in `Cache-Status`."}),
    bound<&Cache::cache_status_admission>(
        {.name = "cache_status_admission",
         .kind = Kind::kBool,
         .doc = "Show admission in `Cache-Status` (`stored`, `detail=first-request`, ...). false "
                "also sends `Range` and conditions to the origin unchanged, which [hides the "
                "answers](FILTER-SECURITY.md#hide-the-answers) and costs hits."}),
    bound<&Cache::tag_fields>({.name = "tag_fields",
                               .kind = Kind::kTextList,
                               .doc = "Response fields with tags for purging.",
                               .range = {.min = 0, .max = 16},
                               .accepted = "names of fields",
                               .item_check = check_field_name}),
    bound<&Cache::strip_tags>(
        {.name = "strip_tags", .kind = Kind::kBool, .doc = "Remove these fields for clients."}),
    bound<&Cache::purge_at_start>(
        {.name = "purge_at_start",
         .kind = Kind::kBool,
         .doc =
             "Purge all disks at every start, for sites that are edited while the proxy is down."}),
    bound<&Cache::mean_object_bytes>(
        {.name = "mean_object",
         .kind = Kind::kBytes,
         .doc = "Expected mean size of an object with key and head, for the default "
                "`admission.capacity` with disks and the estimates of `--check-config`.",
         .range = {.min = 64, .max = 1.0 * kTiB}}),
    bound<&Cache::disk_write_rate>(
        {.name = "disk_write_rate",
         .kind = Kind::kBytes,
         .doc = "Bytes written to all disks per second. Further objects stay in memory only; "
                "rewritten ones count, but never wait. 0: no limit.",
         .range = {.min = 1, .max = static_cast<double>(cache::kWriteRateMax)},
         .zero_is_off = true,
         .apply = Apply::kUpgrade,
         .not_reloaded = "disks take their rules at the start"}),
    bound<&Cache::disk_reinsert>({.name = "disk_reinsert",
                                  .kind = Kind::kInteger,
                                  .doc = "Percent of a reclaimed segment that is rewritten at most "
                                         "if requested: more hits for more writes.",
                                  .range = {.min = 0, .max = cache::kReinsertPercentMax},
                                  .apply = Apply::kUpgrade,
                                  .not_reloaded = "disks take their rules at the start"}),
    bound<&Cache::disk_life_min>({.name = "disk_life_min",
                                  .kind = Kind::kDuration,
                                  .doc = "Do not write objects to disk that expire sooner.",
                                  .range = {.min = 0, .max = 365 * kDay},
                                  .apply = Apply::kUpgrade,
                                  .not_reloaded = "disks take their rules at the start"}),
};

// More than any device is rated for.
constexpr std::uint64_t kEnduranceMax = 1024 * 1024 * kTiB;

constexpr std::array kDiskKeys = {
    bound<&Disk::path>(
        {.name = "path",
         .doc = "A file, a block device, or a directory (also a name that ends in `/`), in which "
                "the file `disk` is used. Missing files and directories are created. Relative "
                "names start at encore's working directory. Anything that is not a disk of "
                "encore is refused.",
         .required = true,
         .apply = Apply::kRestart,
         .not_reloaded = "disks are opened at the start",
         .accepted = "a file or directory name",
         .item_check = check_disk_name}),
    bound<&Disk::size_bytes>({.name = "size",
                              .kind = Kind::kBytes,
                              .doc = "Total size, allocated at the start. A disk of another size "
                                     "is resized at a start, and keeps the objects that fit.",
                              .range = {.min = static_cast<double>(cache::kDiskBytesMin),
                                        .max = static_cast<double>(cache::kDiskBytesMax)},
                              .required = true,
                              .apply = Apply::kRestart,
                              .not_reloaded = "a disk is resized at a start"}),
    bound<&Disk::segment_bytes>(
        {.name = "segment",
         .kind = Kind::kBytes,
         .doc = "Unit of writing and reclaiming; a disk has at least 4. Applies to new disks. 0: a "
                "power of two that gives 64 to 127 segments, from 4MiB (with at least 32) to "
                "64MiB, 256MiB beyond 4TiB.",
         .range = {.min = static_cast<double>(cache::kSegmentBytesMin),
                   .max = static_cast<double>(cache::kSegmentBytesMax)},
         .zero_is_off = true,
         .power_of_two = true}),
    bound<&Disk::endurance_bytes>(
        {.name = "endurance",
         .kind = Kind::kBytes,
         .doc = "Rated writes of the device (TBW), as `600TB`, for its years at the current rate "
                "(`--check-config`). 0: unknown.",
         .range = {.min = static_cast<double>(kGiB), .max = static_cast<double>(kEnduranceMax)},
         .zero_is_off = true}),
};

constexpr std::array kAdmissionKeys = {
    bound<&Admission::policy>(
        {.name = "policy",
         .kind = Kind::kChoice,
         .doc = "`second-hit`: store at the second request, by a rotating pair of Bloom filters. "
                "`exact-second-hit`: by exact sets, with more memory. `nth-hit`: at request "
                "`min_requests`. `probability`, `size-threshold`: by these keys. `tinylfu`: if "
                "requested more often than the victim of a full cache. `adaptsize`: with "
                "probability exp(-size/c), c tuned to the traffic. `probation`, the default with "
                "`[[disk]]` unless `hash` or `refresh` are changed: objects wait in memory, and "
                "only later requests write them to disk ([DISK.md](DISK.md#probation)). Responses "
                "without a length count as the largest storable size.",
         .choices = cache::kAdmissionNames}),
    bound<&Admission::min_requests>({.name = "min_requests",
                                     .kind = Kind::kInteger,
                                     .doc = "`nth-hit`: the request that stores. Each earlier one "
                                            "is an insertion that counts in `capacity`.",
                                     .range = {.min = 2, .max = cache::kMinRequestsMax}}),
    bound<&Admission::probability>({.name = "probability",
                                    .kind = Kind::kReal,
                                    .doc = "`probability`: that of each request.",
                                    .range = {.min = 1e-9, .max = 1}}),
    bound<&Admission::size_threshold_bytes>({.name = "size_threshold",
                                             .kind = Kind::kBytes,
                                             .doc = "`size-threshold`: the largest stored object.",
                                             .range = {.min = 1, .max = 64.0 * kTiB}}),
    bound<&Admission::write_cost>(
        {.name = "write_cost",
         .kind = Kind::kReal,
         .doc = "`probation`: cost of a byte written to disk, in bytes fetched from an origin. "
                "Samples of the traffic choose the cheapest window. 0 aims at hits only, 1 and "
                "more spares the disk.",
         .range = {.min = 0, .max = cache::ProbationSamples::kWriteCostMax}}),
    bound<&Admission::fill>(
        {.name = "fill",
         .kind = Kind::kBool,
         .doc = "`probation`: also write every object until a disk was full once."}),
    bound<&Admission::capacity>(
        {.name = "capacity",
         .kind = Kind::kInteger,
         .doc = "Insertions, over all shards, after which the pair rotates: a key is remembered "
                "for one to two times as many. 0: 1000000; with `[[disk]]` 3.5 per object that "
                "memory and disks hold (`cache.mean_object`), for `nth-hit` times `min_requests` - "
                "1; `probation`: two per 8KiB of disk; `bits`: where a filter is half full. "
                "`tinylfu`, `adaptsize`: requests per window (0: 1000000).",
         .range = {.min = 1, .max = 1e12},
         .zero_is_off = true}),
    bound<&Admission::fpr>({.name = "fpr",
                            .kind = Kind::kReal,
                            .doc = "Worst false-positive rate of a cycle: the part of one-hit "
                                   "objects that are stored anyway.",
                            .range = {.min = 1e-9, .max = 0.5},
                            .zero_is_off = true}),
    bound<&Admission::bits>({.name = "bits",
                             .kind = Kind::kInteger,
                             .doc = "Bits of a generation over all shards, instead of `fpr`. 0: "
                                    "from `capacity` and `fpr`.",
                             .range = {.min = 512, .max = 0x1p42},
                             .zero_is_off = true}),
    bound<&Admission::hashes>({.name = "hashes",
                               .kind = Kind::kInteger,
                               .doc = "Bits set per key (k). 0: the best for the layout. Other "
                                      "values than 8 without `layout` select `classic`.",
                               .range = {.min = 1, .max = kConfiguredHashesMax},
                               .zero_is_off = true}),
    bound<&Admission::layout>({.name = "layout",
                               .kind = Kind::kChoice,
                               .doc = "Place of a key's bits: anywhere (`classic`), one per slice "
                                      "(`partitioned`), in one 64-byte line (`blocked`), one in "
                                      "each of a line's eight words (`split`, the fastest).",
                               .choices = kLayouts}),
    bound<&Admission::hash>(
        {.name = "hash",
         .kind = Kind::kChoice,
         .doc = "Hash family: `siphash` for hostile clients; the digests are for study.",
         .choices = kHashes}),
    bound<&Admission::seed>({.name = "seed",
                             .doc = "Secret of the filter, in hex. Empty: random, and saved in the "
                                    "state. Proxies that merge filters need the same.",
                             .secret = true,
                             .accepted = "1 to 32 hex digits or \"\"",
                             .item_check = check_seed}),
    bound<&Admission::rotate_after>({.name = "rotate_after",
                                     .kind = Kind::kDuration,
                                     .doc = "Rotate also after this time. 0: by `capacity` only.",
                                     .range = {.min = kSecond, .max = 365 * kDay},
                                     .zero_is_off = true}),
    bound<&Admission::refresh>({.name = "refresh",
                                .kind = Kind::kBool,
                                .doc = "Insert keys found in the older generation into the current "
                                       "one, so that requested keys do not expire."}),
    bound<&Admission::shadow_sample>(
        {.name = "shadow_sample",
         .kind = Kind::kInteger,
         .doc = "Store one key in N exactly, to measure the false-positive rate. 0: none.",
         .range = {.min = 1, .max = 65536},
         .zero_is_off = true,
         .power_of_two = true}),
    bound<&Admission::adopted_memory_bytes>(
        {.name = "adopted_memory",
         .kind = Kind::kBytes,
         .doc = "Memory for adopted filters (`POST /filter/adopt`, `--adopt-from`); their saved "
                "form may have 2 MiB more. 0: none.",
         .range = {.min = 1.0 * kMiB, .max = 1.0 * kTiB},
         .zero_is_off = true}),
};

}  // namespace

std::span<const Key> cache_keys() { return kCacheKeys; }
std::span<const Key> disk_keys() { return kDiskKeys; }
std::span<const Key> admission_keys() { return kAdmissionKeys; }

}  // namespace encore::config
