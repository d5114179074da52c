#include "tests/simulate/published.h"

#include <openssl/sha.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "filter/any_filter.h"
#include "filter/published/bloomnames.h"
#include "proxy/publish/hour.h"
#include "tests/simulate/system.h"

namespace encore::simulate {
namespace {

using proxyfuzz::Answer;
using proxyfuzz::Change;
using proxyfuzz::Field;
using proxyfuzz::find;
using proxyfuzz::now;
using proxyfuzz::Request;
using proxyfuzz::Url;

constexpr double kPercent = 1;
constexpr std::size_t kSnapshots = 4;
constexpr std::size_t kKnownMax = 2000;
constexpr std::size_t kDigestHead = 128;
constexpr std::string_view kSquids = "/squid-internal-periodic/store_digest";

std::int64_t wall() { return System::current()->wall_now() / 1'000'000'000; }

std::string filters_path(std::string_view rest) {
  std::string path(kFiltersPath);
  path += rest;
  return path;
}

std::string path_of(std::int64_t hour) {
  return filters_path("/changed/") + publish::to_path({hour});
}

std::string value_of(const Answer& answer, std::string_view name) {
  const Field* const field = find(answer.head.fields, name);
  return field == nullptr ? std::string() : field->value;
}

std::optional<std::string> gunzipped(std::string_view bytes) {
  std::string out(std::size_t{1} << 16, '\0');
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzip) != Z_OK) return std::nullopt;
  std::string in(bytes);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  if (result != Z_STREAM_END || stream.avail_in != 0) return std::nullopt;
  return out;
}

// Behind "name": in a JSON text, up to its end.
std::string_view member_of(std::string_view json, std::string_view name) {
  const std::string quoted = "\"" + std::string(name) + "\":";
  const std::size_t at = json.find(quoted);
  if (at == std::string_view::npos) return {};
  std::string_view rest = json.substr(at + quoted.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest.substr(0, rest.find_first_of(",}\n"));
}

int hex_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// "0x80a1L": bit i is worth 2^i.
bool read_number(std::string_view text, std::vector<bool>& bits) {
  if (!text.starts_with("\"0x") || !text.ends_with("L\"")) return false;
  text = text.substr(3, text.size() - 5);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int digit = hex_of(text[text.size() - 1 - i]);
    if (digit < 0) return false;
    for (std::size_t bit = 0; bit < 4; ++bit) {
      if ((digit >> bit & 1) == 0) continue;
      if (4 * i + bit >= bits.size()) return false;
      bits[4 * i + bit] = true;
    }
  }
  return true;
}

}  // namespace

PublishedOracle::PublishedOracle(proxyfuzz::World& world, proxyfuzz::Ring& ring,
                                 proxyfuzz::Origin& origin, std::int64_t keep)
    : world_(world),
      ring_(ring),
      origin_(origin),
      keep_(keep),
      hours_(keep, wall(), now()),
      started_(now()) {
  world_.on_change = [this](const Change& change) {
    const std::string key = key_of(change.url, change.path);
    if (change.certain) {
      hours_.note_certain(key, change.since, now());
    } else {
      hours_.note_possible(change.serial, key);
    }
  };
  world_.on_hit = [this](const Request& request, double first_hit) {
    judge_hit(request, first_hit);
  };
}

void PublishedOracle::start(const HoursModel* saved) {
  started_ = now();
  known_.clear();
  snapshots_.clear();
  if (saved == nullptr) {
    hours_ = HoursModel(keep_, wall(), now());
  } else {
    hours_ = *saved;
    hours_.restore(wall(), now());
  }
}

void PublishedOracle::look() {
  origin_.note_heard();
  const bool next = hours_.advance(wall(), now(), [this](std::uint64_t serial) {
    // A change that is seen in the moment in which the hour begins belongs to that hour.
    const proxyfuzz::Event* const event = world_.event(serial);
    return event == nullptr || event->heard < now();
  });
  if (next) world_.count("published: another hour");
}

void PublishedOracle::note_purge(const Url& url) {
  const std::string key = key_of(url, url.path);
  hours_.note_possible(0, key);
  hours_.note_certain(key, now(), now());
}

std::string PublishedOracle::key_of(const Url& url, std::string_view path) const {
  return "http://" + host_of(ring_, url) + std::string(path);
}

bool PublishedOracle::is_due(Random& random) { return random.percent(kPercent); }

void PublishedOracle::compose(Random& random, Request& request) {
  request.method = random.percent(10) ? "HEAD" : "GET";
  request.http10 = random.percent(3);
  const std::int64_t hour = hours_.current();
  const std::uint64_t kind = random.below(100);
  std::string path = path_of(hour);
  if (kind < 20) path = path_of(hour - random.pick<std::int64_t>({1, 1, 1, 2, 5}));
  if (kind == 20) path = path_of(hour + 1);
  if (kind > 65) path = filters_path("/resident");
  if (kind == 21) path = filters_path("/links");
  const bool is_resident = kind > 65;
  const std::uint64_t form = random.below(100);
  if (form < 60) {
    path += kind == 21 ? ".txt" : ".json";
  } else if (form < 80 && kind != 21) {
    path += ".enc";
  } else if (form < 90 && is_resident) {
    path = random.percent(50) ? path + ".digest" : std::string(kSquids);
  } else if (kind != 21) {
    request.fields.push_back(
        {"Accept", random.percent(50) ? "application/json" : "application/vnd.encore.filter"});
  }
  if (random.percent(20)) request.fields.push_back({"Accept-Encoding", "gzip"});
  const auto last = last_.find(path);
  if (last != last_.end() && random.percent(40)) {
    request.conditional = true;
    request.fields.push_back({"If-None-Match", last->second});
  } else if (random.percent(10)) {
    request.range = "bytes=" + std::to_string(random.below(300)) + "-";
    request.fields.push_back({"Range", request.range});
    if (last != last_.end() && random.percent(50)) {
      request.fields.push_back({"If-Range", last->second});
    }
  }
  request.own_path = std::move(path);
}

void PublishedOracle::fault(const Request& request, const Answer& answer,
                            const std::string& what) const {
  world_.report("published", request.own_path + ": " + what, &request,
                answer.raw + answer.kept.substr(0, 2000));
}

PublishedOracle::Named PublishedOracle::name_of(const Request& request, const Answer& answer) {
  std::string path = request.own_path;
  if (path == kSquids) path = filters_path("/resident.digest");
  const std::string location = value_of(answer, "Content-Location");
  if (!location.empty()) path = location;
  Named named{.path = path.substr(0, path.find('.')), .suffix = {}, .hour = {}};
  named.suffix = path.substr(named.path.size());
  const std::string changed = filters_path("/changed/");
  if (path.starts_with(changed)) {
    const auto hour = publish::parse_hour(named.path.substr(changed.size()));
    if (hour) named.hour = hour->number;
  }
  return named;
}

// Which hours there are was the same from before it was sent until now.
bool PublishedOracle::is_steady(const Request& request) const {
  return hours_.current_since() < request.started;
}

void PublishedOracle::judge(const Request& request, const Answer& answer) {
  // It came from the proxy before this one.
  if (request.started < started_) return;
  const Named named = name_of(request, answer);
  world_.count("published: status " + std::to_string(answer.status));
  judge_status(request, answer, named);
  const std::string* const content = content_of(request, answer, named);
  if (content == nullptr) return;
  if (named.suffix == ".txt") {
    if (is_steady(request) && !content->contains(path_of(hours_.current()))) {
      fault(request, answer, "the current hour is not listed");
    }
    return;
  }
  if (named.suffix == ".digest") {
    // Sizes in network order, the mask's behind four numbers.
    std::size_t size = 0;
    for (std::size_t i = 16; i < 20 && i < content->size(); ++i) {
      size = size << 8 | static_cast<unsigned char>((*content)[i]);
    }
    if (content->size() != kDigestHead + size) fault(request, answer, "a digest of another size");
    return;
  }
  auto bits = read_bits(named.suffix, *content);
  if (!bits) return fault(request, answer, "it cannot be read");
  if (named.hour) {
    judge_hour(request, answer, named, *bits);
  } else if (world_.clock_error == 0) {
    // It is made once in a second of the wall clock at most, which stepping would repeat.
    snapshots_.push_back(
        {.since = std::floor(request.started), .until = now(), .bits = std::move(*bits)});
    if (snapshots_.size() > kSnapshots) snapshots_.pop_front();
  }
}

void PublishedOracle::judge_status(const Request& request, const Answer& answer,
                                   const Named& named) {
  const int status = answer.status;
  const bool ranged = !request.range.empty();
  if (status != 200 && status != 404 && !(status == 304 && request.conditional) &&
      !((status == 206 || status == 416) && ranged)) {
    fault(request, answer, "an answer that nothing asked for");
  }
  const bool missing = status == 404;
  if (named.hour ? is_steady(request) && missing != (hours_.find(*named.hour) == nullptr)
                 : missing) {
    fault(request, answer, missing ? "it is not there" : "it was not watched, or is too old");
  }
}

// Returns the content that the answer states, without a coding; null where it does not tell all.
const std::string* PublishedOracle::content_of(const Request& request, const Answer& answer,
                                               const Named& named) {
  const std::string tag = value_of(answer, "ETag");
  const bool tells = answer.status == 200 || answer.status == 304 || answer.status == 206;
  if (!tells) return nullptr;
  if (tag.empty()) fault(request, answer, "it has no ETag");
  if (known_.size() > kKnownMax) known_.clear();
  const std::string name = named.path + named.suffix + " " + tag;
  const auto known = known_.find(name);
  if (answer.status == 206) {
    const std::string range = value_of(answer, "Content-Range");
    unsigned long long first = 0;
    if (known != known_.end() && !tag.ends_with("gzip\"") && request.method == "GET" &&
        (std::sscanf(range.c_str(), "bytes %llu-", &first) != 1 || first > known->second.size() ||
         known->second.substr(first) != answer.kept)) {
      fault(request, answer, "other bytes than those of the whole");
    }
    return nullptr;
  }
  if (answer.status == 304) {
    const Field* const asked = find(request.fields, "If-None-Match");
    if (asked == nullptr || asked->value != tag) fault(request, answer, "a 304 for another ETag");
    return known == known_.end() ? nullptr : &known->second;
  }
  last_[request.own_path] = tag;
  if (request.method == "HEAD") return known == known_.end() ? nullptr : &known->second;
  std::optional<std::string> content = answer.kept;
  if (value_of(answer, "Content-Encoding") == "gzip") content = gunzipped(answer.kept);
  if (!content) {
    fault(request, answer, "what is said to be gzip is none");
    return nullptr;
  }
  if (known != known_.end() && known->second != *content) {
    fault(request, answer, "other content with the same ETag");
  }
  return &(known_[name] = std::move(*content));
}

std::optional<PublishedOracle::Bits> PublishedOracle::read_bits(std::string_view suffix,
                                                                std::string_view body) {
  std::string text(body);
  if (suffix == ".enc") {
    const auto loaded = filter::AnyFilter::load(body);
    if (!loaded || loaded->plain() == nullptr) return std::nullopt;
    text = filter::write_bloomnames_json(*loaded->plain());
  }
  Bits bits;
  bits.m = static_cast<std::uint64_t>(proxyfuzz::number(member_of(text, "m")).value_or(0));
  bits.k = static_cast<std::uint32_t>(proxyfuzz::number(member_of(text, "k")).value_or(0));
  if (bits.m == 0 || bits.m > 1 << 20 || bits.k == 0 || bits.k > Places().size()) {
    return std::nullopt;
  }
  bits.set.resize(bits.m);
  if (member_of(text, "hash") != "\"sha1-fields20\"") return std::nullopt;
  if (!read_number(member_of(text, "filter"), bits.set)) return std::nullopt;
  const std::string_view complete = member_of(text, "complete");
  bits.says_complete = !complete.empty();
  bits.is_complete = complete == "true";
  return bits;
}

// Five hexadecimal digits of the key's SHA-1 for each.
const PublishedOracle::Places& PublishedOracle::places_of(const std::string& key) {
  const auto [at, is_new] = places_.try_emplace(key);
  if (!is_new) return at->second;
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  SHA1(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  const auto nibble = [&](std::size_t i) {
    return static_cast<std::uint32_t>(i % 2 == 0 ? digest[i / 2] >> 4 : digest[i / 2] & 15);
  };
  for (std::size_t i = 0; i < at->second.size(); ++i) {
    for (std::size_t j = 5 * i; j < 5 * i + 5; ++j) {
      at->second[i] = at->second[i] << 4 | nibble(j);
    }
  }
  return at->second;
}

bool PublishedOracle::contains(const Bits& bits, const std::string& key) {
  const Places& places = places_of(key);
  return std::all_of(places.begin(), places.begin() + bits.k,
                     [&](std::uint32_t place) { return bits.set[place % bits.m]; });
}

void PublishedOracle::judge_hour(const Request& request, const Answer& answer, const Named& named,
                                 const Bits& bits) {
  HoursModel::Hour* const hour = hours_.find(*named.hour);
  if (hour == nullptr) return;
  for (const auto& [since, key] : hour->must) {
    if (since > request.started) break;
    world_.count("published: changes looked for");
    if (!contains(bits, key)) return fault(request, answer, "this change is missing: " + key);
  }
  std::vector<bool> rest = bits.set;
  for (const std::string& key : hour->may) {
    const Places& places = places_of(key);
    for (std::size_t i = 0; i < bits.k; ++i) rest[places[i] % bits.m] = false;
  }
  const auto left = std::ranges::count(rest, true);
  if (left != 0) {
    fault(request, answer,
          std::to_string(left) + " bits that no change in this hour explains, of " +
              std::to_string(std::ranges::count(bits.set, true)));
  }
  if (bits.says_complete && is_steady(request) && bits.is_complete != hour->complete) {
    fault(request, answer, "it was watched from its start to its end, or was not");
  }
  judge_final(request, answer, named, *hour);
}

// An hour that is over never changes again.
void PublishedOracle::judge_final(const Request& request, const Answer& answer, const Named& named,
                                  HoursModel::Hour& hour) {
  if (!is_steady(request)) return;
  const bool over = *named.hour < hours_.current();
  const bool immutable = value_of(answer, "Cache-Control").contains("immutable");
  if (over != immutable) fault(request, answer, "only an hour that is over is immutable");
  if (!over) return;
  world_.count("published: hours that are over");
  const std::string tag = value_of(answer, "ETag");
  const bool coded = tag.ends_with("-gzip\"");
  const auto [known, is_new] =
      hour.final_tags.try_emplace(named.suffix + (coded ? " gzip" : ""), tag);
  if (!is_new && known->second != tag) fault(request, answer, "an hour that is over has changed");
}

// A response that is in the cache when the request is looked up, and was stored once, before
// `first_hit`, has been there all the time.
void PublishedOracle::judge_hit(const Request& request, double first_hit) {
  for (const Snapshot& snapshot : snapshots_) {
    if (first_hit >= snapshot.since || request.started <= snapshot.until) continue;
    world_.count("published: resident responses looked for");
    if (contains(snapshot.bits, key_of(*request.url, request.url->path))) continue;
    world_.report("published", "a hit before and behind it, but it was not resident then", &request,
                  std::to_string(snapshot.since) + " to " + std::to_string(snapshot.until) + "\n");
  }
}

}  // namespace encore::simulate
