// The configuration, as plain values. The keys' names, ranges, units and meanings are in
// config/schema.cc (and docs/CONFIG.md, which is made from it); the defaults are here. Values,
// thread-compatible. A Config that load_config() (config/load.h) returned is valid: its numbers are
// within the ranges of the schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "base/units.h"
#include "cache/options.h"
#include "config/parsed.h"
#include "filter/hash.h"
#include "filter/parameters.h"

namespace encore::config {

enum class Mode : std::uint8_t { kForward, kReverse };
enum class HostHeader : std::uint8_t { kPreserve, kOrigin };
enum class Balance : std::uint8_t { kRoundRobin, kLeastRequests, kHash, kClient };
enum class AdmissionHint : std::uint8_t { kOff, kTrusted };
enum class SetCookie : std::uint8_t { kStrip, kRefuse, kStore };
enum class PrivateDestinations : std::uint8_t { kNever, kLoopbackClients, kAlways };
using Eviction = cache::EvictionPolicy;  // all but kBelady
using Policy = cache::AdmissionPolicy;
// auto: on for what a reverse listener serves, off for a forward one.
enum class Switch : std::uint8_t { kAuto, kOn, kOff };
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarn, kError, kOff };
// Use of request ids; each value includes the uses before it.
enum class RequestIds : std::uint8_t {
  kOff,      // there are none
  kLog,      // the log has them
  kForward,  // sent to servers of [[origin]]s
  kRespond,  // sent to clients
};

// The one field that a trusted proxy is taken to write; the other one is not looked at.
enum class TrustedField : std::uint8_t { kXForwardedFor, kForwarded };
// Fields about the client that origins receive. auto: both behind a reverse listener, nothing
// behind a forward one.
enum class ForwardedFields : std::uint8_t { kAuto, kOff, kXForwarded, kForwarded, kBoth };

// Response to a TLS client whose requested name no certificate has.
enum class UnknownName : std::uint8_t { kDefault, kRefuse };
enum class TlsVersion : std::uint8_t { k12, k13 };
// Demand for certificates of TLS clients.
enum class ClientVerify : std::uint8_t { kOff, kRequest, kRequire };

// [[listen]]: one listening address.
struct Listen {
  EndpointText address = "127.0.0.1:3128";
  Mode mode = Mode::kForward;
  SocketModeText socket_mode = "0660";  // mode of a socket file
  // Identity of the client, and the fields about it.
  std::vector<CidrText> trusted_proxies = {};
  TrustedField trusted_field = TrustedField::kXForwardedFor;
  bool proxy_protocol = false;
  bool http2 = true;
  ForwardedFields forwarded = ForwardedFields::kAuto;
  bool via = true;
  bool cache_status = true;
  // Access. An empty list of what is allowed allows all.
  std::vector<CidrText> allow_clients = {};
  std::vector<CidrText> deny_clients = {};
  std::vector<std::string> allow_hosts = {};  // globs, lower case
  std::vector<std::string> deny_hosts = {};
  std::vector<std::string> allow_paths = {};  // globs
  std::vector<std::string> deny_paths = {};
  std::vector<std::string> allow_methods = {};
  std::vector<PortRangeText> allow_ports = {};
  std::string users_file = {};                 // empty: none
  std::vector<std::string> users_helper = {};  // a program and its arguments; empty: none
  std::string tokens_file = {};                // empty: none
  std::string realm = "encore";
  std::vector<CidrText> purge_clients = {};
  bool purge_to_origin = false;  // with no purge_clients
  // TLS to clients; without a certificate they speak plain HTTP.
  std::vector<TlsPairText> tls = {};
  Nanoseconds tls_check_interval = std::chrono::minutes(1);  // files of `tls`; 0: only reloads
  UnknownName tls_unknown_name = UnknownName::kDefault;
  TlsVersion tls_min_version = TlsVersion::k12;
  std::vector<std::string> tls_alpn = {"http/1.1"};
  std::string tls_ticket_file = {};  // empty: keys of our own
  ClientVerify tls_client_verify = ClientVerify::kOff;
  std::string tls_client_ca = {};
  std::string tls_client_field = {};  // empty: origins are not told
  bool redirect_https = false;
  std::uint32_t redirect_https_port = 443;
  friend bool operator==(const Listen&, const Listen&) = default;
};

// [acme]: challenges of certificate authorities, whose responses an ACME client writes to files.
struct Acme {
  std::string challenge_directory;  // empty: none is answered here
  friend bool operator==(const Acme&, const Acme&) = default;
};

// [[origin]]: where requests to a reverse listener go.
struct Origin {
  std::string host = "*";  // lower case: exact, "*.example.com" (any depth below it), or "*"
  std::string path = "/";  // prefix, starts with "/"
  std::vector<ServerText> servers = {"http://127.0.0.1:8000"};
  Balance balance = Balance::kRoundRobin;
  double hot_share = 0.05;  // 0: no key is hot
  AdmissionHint admission_hint = AdmissionHint::kOff;
  Nanoseconds slow_start = Nanoseconds(0);   // 0: none
  std::string health_path;                   // empty: no checks
  std::vector<std::uint64_t> health_status;  // empty: any of 200 .. 399
  Nanoseconds health_interval = std::chrono::seconds(5);
  Nanoseconds health_timeout = std::chrono::seconds(2);
  std::uint32_t health_down = 2;  // checks in a row
  std::uint32_t health_up = 2;
  HostHeader host_header = HostHeader::kPreserve;
  std::string host_header_value;  // empty: as host_header says
  bool tls_verify = true;
  std::string tls_ca_file;      // empty: upstream.tls_ca_file
  std::string tls_server_name;  // SNI and the name verified; empty: the server's host
  std::string tls_certificate;  // ours, for servers that ask for one; empty: upstream's
  std::string tls_key;
  bool http2 = false;
  friend bool operator==(const Origin&, const Origin&) = default;
};

struct Forward {
  std::vector<CidrText> allow_clients = {"127.0.0.0/8", "::1"};
  std::vector<std::uint64_t> connect_ports = {80, 443, 8443};
  // Ports of programs that serve HTTP: those of mail, remote shells, name servers and directories
  // are left out.
  std::vector<PortRangeText> safe_ports = {"80-86", "88",  "280",     "443",     "488",
                                           "591",   "777", "800-872", "874-988", "1025-65535"};
  PrivateDestinations private_destinations = PrivateDestinations::kLoopbackClients;
  OptionalUrlText parent = "";     // another proxy, that is asked instead of the origins
  std::vector<std::string> https;  // host patterns, as those of [[origin]]
  friend bool operator==(const Forward&, const Forward&) = default;
};

// A client that does not take our certificate.
enum class ClientReject : std::uint8_t { kSplice, kFail };

struct Intercept {
  std::string ca_certificate;  // empty: off
  std::string ca_key;
  std::vector<std::string> hosts;  // patterns, as those of [[origin]], but no addresses
  std::vector<std::string> never;
  bool any_host = false;
  std::vector<std::uint64_t> ports = {443};
  ClientReject on_client_reject = ClientReject::kSplice;
  std::uint32_t reject_after = 3;                      // refusals
  Nanoseconds reject_first = std::chrono::minutes(1);  // no effect beyond reject_memory
  Nanoseconds reject_memory = std::chrono::hours(1);
  Nanoseconds hello_wait = std::chrono::seconds(1);
  bool http2 = false;
  bool is_on() const { return !ca_certificate.empty() && !hosts.empty(); }
  friend bool operator==(const Intercept&, const Intercept&) = default;
};

struct Cache {
  std::uint64_t memory_bytes = 256 * kMiB;
  std::uint32_t shards = 16;  // a power of two
  Eviction eviction = Eviction::kSieve;
  std::uint64_t max_object_bytes = 32 * kMiB;  // as written; see effective_max_object()
  // In flight.
  bool collapse = true;
  std::uint64_t collapse_buffer_bytes = 1 * kMiB;
  Nanoseconds uncacheable_memory = std::chrono::seconds(120);
  std::uint64_t background_finish_bytes = 32 * kMiB;
  std::uint64_t range_fetch_max_bytes = 32 * kMiB;
  // Identity of an object.
  std::uint32_t variants_max = 32;
  bool query_sort = false;
  std::vector<std::string> query_drop;
  Switch normalise_accept_encoding = Switch::kAuto;
  // Freshness.
  double heuristic_fraction = 0.1;
  Nanoseconds heuristic_max = std::chrono::hours(24);
  bool heuristic_with_cookie = false;
  Nanoseconds keep_stale = std::chrono::hours(24);
  bool serve_stale_on_error = true;
  Nanoseconds stale_while_revalidate = Nanoseconds(0);
  Nanoseconds stale_if_error = Nanoseconds(0);
  std::vector<std::string> targets = {"CDN-Cache-Control"};
  bool ignore_client_reload = false;
  SetCookie set_cookie = SetCookie::kStrip;
  // Fields of responses.
  bool cache_status_key = false;
  bool cache_status_admission = true;
  std::vector<std::string> tag_fields = {"Surrogate-Key", "Cache-Tag"};
  bool strip_tags = false;
  bool purge_at_start = false;
  // For all disks.
  std::uint64_t mean_object_bytes = 16 * kKiB;
  std::uint64_t disk_write_rate = 0;                     // bytes a second; 0: no limit
  std::uint32_t disk_reinsert = 65;                      // percent of a segment
  Nanoseconds disk_life_min = std::chrono::seconds(60);  // counted in whole seconds, rounded up
  friend bool operator==(const Cache&, const Cache&) = default;
};

// [compression]: what is compressed here.
struct Compression {
  std::vector<std::string> codings;  // in order of preference; empty: nothing is
  std::vector<std::string> types = {"text/*",
                                    "application/json",
                                    "application/javascript",
                                    "application/xml",
                                    "application/wasm",
                                    "application/*+json",
                                    "application/*+xml",
                                    "image/svg+xml",
                                    "font/ttf",
                                    "font/otf"};  // globs, lower case
  std::uint64_t min_size_bytes = 1 * kKiB;
  std::uint32_t zstd_level = 3;
  std::uint32_t br_level = 4;
  std::uint32_t gzip_level = 6;
  std::uint64_t memory_bytes = 64 * kMiB;
  friend bool operator==(const Compression&, const Compression&) = default;
};

// [[disk]]: a file or a block device behind the memory; derive_disk() in derive.h divides it.
struct Disk {
  std::string path;
  std::uint64_t size_bytes = 0;
  std::uint64_t segment_bytes = 0;    // a power of two; 0: by the size
  std::uint64_t endurance_bytes = 0;  // that its device is rated to be written; 0: not known
  friend bool operator==(const Disk&, const Disk&) = default;
};

// The limit of `hashes`, and of the number that follows from `bits` or `fpr`: each is a memory
// access of the request that waits for it. The simulator allows as many as a filter does.
inline constexpr std::uint32_t kConfiguredHashesMax = 64;

// Either `capacity` and `fpr` are set, or `bits` and maybe `hashes` and `capacity`. In the first
// case bits is 0, and capacity 0 means window_of() in derive.h. In the second fpr is 0, and
// capacity 0 means the half-full point. The function derive_filter() in derive.h makes a filter of
// it. `seed` is secret: never log it, see filter::fingerprint().
struct Admission {
  Policy policy = Policy::kSecondHit;
  std::uint32_t min_requests = 3;                  // nth-hit
  double probability = 0.5;                        // probability
  std::uint64_t size_threshold_bytes = 64 * kKiB;  // size-threshold
  double write_cost = 0.2;                         // probation: of a byte written, in fetched ones
  bool fill = true;                                // probation
  std::uint64_t capacity = 0;
  double fpr = 0.01;
  std::uint64_t bits = 0;
  std::uint32_t hashes = 0;
  filter::Layout layout = filter::Layout::kSplit;
  filter::HashFamily hash = filter::HashFamily::kXxh3;
  SeedText seed = "";  // none: random, kept with the state
  Nanoseconds rotate_after = Nanoseconds(0);
  bool refresh = true;
  std::uint32_t shadow_sample = 256;  // one key in so many, a power of two; 0: no shadow
  std::uint64_t adopted_memory_bytes = 256 * kMiB;
  friend bool operator==(const Admission&, const Admission&) = default;
};

struct State {
  std::string directory;
  Nanoseconds save_interval = std::chrono::minutes(5);
  friend bool operator==(const State&, const State&) = default;
};

// Replacing the running process by a new one. 0: no such limit.
struct Upgrade {
  Nanoseconds start = std::chrono::minutes(2);
  Nanoseconds idle = std::chrono::seconds(10);
  Nanoseconds drain = std::chrono::minutes(10);
  Nanoseconds tunnels = std::chrono::hours(1);
  friend bool operator==(const Upgrade&, const Upgrade&) = default;
};

struct Workers {
  std::uint32_t count = 0;  // 0: one a core
  friend bool operator==(const Workers&, const Workers&) = default;
};

struct Admin {
  // Those that are "" are none. With a state directory a socket in it is added to the default.
  std::vector<OptionalEndpointText> address = {"127.0.0.1:3129"};
  SocketModeText socket_mode = "0660";
  // Host names accepted in addition to the loopback names and the listener's own address.
  std::vector<std::string> allow_hosts;
  std::vector<CidrText> allow_clients = {"127.0.0.0/8", "::1"};
  std::string token_file;  // path, "" for none
  bool show_queries = false;
  std::uint32_t metrics_series = 200;
  friend bool operator==(const Admin&, const Admin&) = default;
};

// [filters]: what is published.
inline constexpr std::string_view kPublishChanged = "changed";
inline constexpr std::string_view kPublishResident = "resident";
// Hash of a published filter: never with a secret.
enum class PublishedHash : std::uint8_t { kXxh3, kSha1Fields20 };
struct Filters {
  std::vector<std::string> publish;  // any of these two
  std::string path;  // on proxy listeners: "/filters", no "/" at its end; empty: not there
  std::vector<CidrText> allow_clients = {"127.0.0.0/8", "::1"};
  Nanoseconds keep = std::chrono::hours(48);
  std::uint64_t capacity = 10'000;  // keys an hour
  double fpr = 0.01;
  PublishedHash hash = PublishedHash::kXxh3;
  std::uint64_t resident_capacity = 0;  // 0: as derive_resident_filter() says
  bool squid_digest = false;
  friend bool operator==(const Filters&, const Filters&) = default;
};

// Policies that are simulated on the same requests, on a sample of the keys.
inline constexpr std::uint32_t kShadowPoliciesMax = 16;
struct Shadow {
  std::vector<ShadowPolicyText> policies;  // none: nothing is simulated
  std::uint32_t sample = 64;               // one key in so many
  std::uint64_t cache_bytes = 0;           // 0: as cache.memory
  friend bool operator==(const Shadow&, const Shadow&) = default;
};

struct Log {
  std::string access;  // path, "-" for standard output, "" for none
  LogFormatText format = "json";
  RequestIds request_id = RequestIds::kForward;
  // Parameters of queries whose values are secrets, in any case.
  std::vector<std::string> redact_query = {"access_token",
                                           "api_key",
                                           "apikey",
                                           "auth_token",
                                           "client_secret",
                                           "id_token",
                                           "password",
                                           "refresh_token",
                                           "secret",
                                           "sig",
                                           "signature",
                                           "token",
                                           "x-amz-security-token",
                                           "x-amz-signature",
                                           "x-goog-signature"};
  std::string decisions;  // path, "" for none
  LogLevel level = LogLevel::kInfo;
  friend bool operator==(const Log&, const Log&) = default;
};

// 0 in any of them: no such limit.
struct Timeouts {
  Nanoseconds tls_handshake = std::chrono::seconds(10);
  Nanoseconds client_header = std::chrono::seconds(30);
  Nanoseconds client_idle = std::chrono::seconds(75);
  Nanoseconds client_body = std::chrono::seconds(60);
  Nanoseconds client_write = std::chrono::seconds(60);
  Nanoseconds collapse = std::chrono::seconds(5);
  Nanoseconds origin_connect = std::chrono::seconds(10);
  Nanoseconds origin_response = std::chrono::seconds(60);
  Nanoseconds origin_idle = std::chrono::seconds(60);
  Nanoseconds tunnel_idle = std::chrono::minutes(10);
  Nanoseconds upgrade_idle = std::chrono::minutes(10);
  Nanoseconds pool_idle = std::chrono::seconds(30);
  Nanoseconds pool_age = std::chrono::hours(1);
  Nanoseconds dns = std::chrono::seconds(10);
  Nanoseconds drain = std::chrono::seconds(30);
  friend bool operator==(const Timeouts&, const Timeouts&) = default;
};

struct Limits {
  std::uint64_t head_bytes = 64 * kKiB;
  std::uint64_t uri_bytes = 16 * kKiB;
  std::uint32_t fields = 256;
  std::uint64_t trailers_bytes = 16 * kKiB;
  std::uint64_t chunk_extension_bytes = 4 * kKiB;
  std::uint64_t request_body_bytes = 0;      // 0: none
  std::uint64_t client_body_rate_min = 512;  // bytes a second; 0: none
  std::uint64_t body_behind_response_bytes = 1 * kGiB;
  std::uint32_t connections = 65536;               // clients, over all workers
  ClientShareText connections_per_client = "25%";  // share of the maximum; 0: no limit
  ClientShareText transfers_per_client = "12%";    // share of connections, too; 0: no limit
  std::uint32_t failed_logins_per_client = 20;     // a minute; 0: no limit
  std::uint32_t unfinished_heads = 4096;           // over all workers
  std::uint64_t unfinished_head_bytes = 64 * kMiB;
  std::uint32_t tls_handshakes_per_client = 256;  // 0: none
  std::uint32_t tls_handshakes_per_turn = 16;     // per turn of a worker's loop
  std::uint32_t pipeline = 64;
  std::uint32_t interim_responses = 32;
  std::uint64_t transfer_buffer_bytes = 256 * kKiB;
  std::uint64_t transfer_memory_bytes = 256 * kMiB;            // plus a quarter of cache.memory
  std::uint64_t transfer_memory_per_client_bytes = 64 * kMiB;  // 0: none
  std::uint64_t client_write_rate_min = 1 * kKiB;              // bytes a second; 0: none
  friend bool operator==(const Limits&, const Limits&) = default;
};

// [[limit]]: how often requests may come. The requests of one address, one network or one value of
// a field have a bucket of `burst` tokens, into which `rate` come a second.
struct RateLimit {
  double rate = 10;
  std::uint32_t burst = 20;
  std::string field;  // lower case; empty: by the client's address
  std::uint32_t prefix_v4 = 32;
  std::uint32_t prefix_v6 = 64;
  std::vector<std::string> hosts;     // globs, lower case; empty: all
  std::vector<std::string> paths;     // globs; empty: all
  std::vector<std::string> listener;  // addresses as [[listen]] has them; empty: all
  std::uint32_t entries = 65536;      // buckets that are remembered
  friend bool operator==(const RateLimit&, const RateLimit&) = default;
};

struct Upstream {
  std::uint32_t pool_per_server = 256;
  std::uint32_t connections_per_server = 8192;  // over all workers; 0: none
  ClientShareText connections_per_client = "50%";
  std::uint32_t http2_streams = 100;        // per connection
  std::uint32_t waiting_per_server = 1024;  // over all workers
  std::uint32_t retries = 1;
  std::uint32_t eject_after = 1;
  Nanoseconds set_aside = std::chrono::seconds(10);
  Nanoseconds set_aside_max = std::chrono::seconds(60);  // no effect below set_aside
  Nanoseconds first_byte = Nanoseconds(0);               // 0: timeouts.origin_response alone
  Nanoseconds total = Nanoseconds(0);                    // 0: none
  std::uint64_t buffer_requests_bytes = 0;               // 0: none is waited for
  bool tls_verify = true;
  std::string tls_ca_file;      // empty: the system's
  std::string tls_certificate;  // empty: none is shown
  std::string tls_key;
  std::vector<NameserverText> nameservers;  // empty: the system's
  Nanoseconds dns_ttl_min = Nanoseconds(0);
  Nanoseconds dns_ttl_max = std::chrono::hours(1);  // not below dns_ttl_min
  Nanoseconds dns_negative_ttl = std::chrono::seconds(5);
  // Per worker.
  std::uint32_t dns_cache_entries = 16384;  // 0: no cache
  std::uint32_t dns_lookups = 4096;
  std::uint32_t dns_lookups_per_client = 1024;
  friend bool operator==(const Upstream&, const Upstream&) = default;
};

// [[rule]]: exceptions for some requests. Only the first matching rule of a request applies. Keys
// that it leaves out stay as in the rest of the config. Empty conditions match everything.
enum class RuleKey : std::uint8_t { kUrl, kDigest };
enum class Verify : std::uint8_t { kNone, kSha256 };
enum class AuthorizationUse : std::uint8_t { kRfc, kRecheck };
struct Rule {
  std::string name;  // empty: "rule-N"
  // Conditions; globs but for the last four. A `content_type` is known with the response alone.
  std::vector<std::string> host;
  std::vector<std::string> path;
  std::vector<std::string> content_type;
  std::vector<std::string> method;
  std::vector<std::string> listener;  // as [[listen]] address has it
  std::vector<CidrText> clients;
  // Storing and lifetimes.
  std::optional<bool> cache;
  std::optional<Policy> admission;
  std::uint32_t min_requests = 3;                  // with nth-hit
  double probability = 0.5;                        // with probability
  std::uint64_t size_threshold_bytes = 64 * kKiB;  // with size-threshold
  std::optional<std::uint64_t> max_object_bytes;
  std::optional<Nanoseconds> fresh;
  std::optional<Nanoseconds> fresh_min;
  std::optional<Nanoseconds> fresh_max;
  std::optional<bool> heuristic_with_cookie;
  std::vector<StatusLifeText> negative;
  std::optional<Nanoseconds> stale_while_revalidate;
  std::optional<Nanoseconds> stale_if_error;
  std::vector<std::string> ignore;
  std::optional<bool> collapse;
  bool compress = true;
  // Identity of an object.
  std::optional<CookiesText> cookies;
  std::optional<KeyQueryText> key_query;
  bool origin_query = false;  // the origin sees what the key leaves out
  std::vector<std::string> key_fields;
  RuleKey key = RuleKey::kUrl;
  Verify verify = Verify::kNone;
  AuthorizationUse authorization = AuthorizationUse::kRfc;
  bool follow_redirects = false;
  std::vector<std::string> follow_hosts;  // globs; empty: the host that was asked for alone
  // Changes to the forwarded request.
  std::string strip_prefix;
  std::string add_prefix;
  std::vector<std::string> replace;  // "FROM=>TO"
  std::vector<FieldLineText> request_set;
  std::vector<FieldLineText> request_add;
  std::vector<std::string> request_remove;
  std::vector<FieldLineText> response_set;
  std::vector<FieldLineText> response_add;
  std::vector<std::string> response_remove;
  std::optional<std::string> client_cache_control;
  // Answers of our own: at most one of these.
  std::optional<std::uint32_t> deny;
  std::string redirect;
  std::uint32_t redirect_status = 302;
  std::optional<std::uint32_t> static_status;
  std::string static_body;
  std::string static_type = "text/plain; charset=utf-8";
  friend bool operator==(const Rule&, const Rule&) = default;
};

// [fleet]: purges that are carried to all nodes.
struct Fleet {
  OptionalRedisUrlText purges = "";  // secret; "": none
  std::string password_file;         // path, "" for none
  std::string node;                  // "": the host name
  Nanoseconds keep = std::chrono::hours(7 * 24);
  Nanoseconds wait = std::chrono::seconds(1);
  Nanoseconds late = Nanoseconds(0);  // 0: /readyz never fails for it
  bool adopt = true;                  // filters of other nodes
  friend bool operator==(const Fleet&, const Fleet&) = default;
};

struct Http {
  std::string via = "encore";
  std::string error_pages;  // a folder, "" for none
  friend bool operator==(const Http&, const Http&) = default;
};

struct Config {
  std::vector<Listen> listen = {Listen{}};
  Acme acme;
  std::vector<Origin> origin;
  std::vector<Rule> rule;
  Forward forward;
  Intercept intercept;
  Cache cache;
  Compression compression;
  std::vector<Disk> disk;
  Admission admission;
  State state;
  Upgrade upgrade;
  Workers workers;
  Admin admin;
  Filters filters;
  Shadow shadow;
  Log log;
  Timeouts timeouts;
  Limits limits;
  std::vector<RateLimit> limit;
  Upstream upstream;
  Fleet fleet;
  Http http;
  friend bool operator==(const Config&, const Config&) = default;
};

}  // namespace encore::config
