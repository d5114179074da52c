// encore-filter join: the keys of two sites, by a filter that one sends the other.
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/cli/output_file.h"
#include "base/cpu_time.h"
#include "base/units.h"
#include "filter/bloom_filter.h"
#include "filter/cli/command.h"
#include "filter/cli/key_reader.h"
#include "filter/join_plan.h"
#include "filter/linear_hash_table.h"
#include "filter/theory.h"

namespace encore::filter {
namespace {

using Json = nlohmann::ordered_json;

constexpr RealRange kRates{.min = 0, .max = 1, .without_min = true, .without_max = true};

// The distinct keys of a site, in a table and in their order.
struct Site {
  LinearHashTable table;
  std::vector<std::string_view> keys;  // the table's copies
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;  // all keys, with one for the end of each
  double build_seconds = 0;
};

std::uint64_t bytes_of(std::string_view key) { return key.size() + 1; }

// A way to join: the filter, if there is one, and its cost.
struct Method {
  std::string name;
  JoinFilter filter;  // bits 0: none
  std::uint64_t filter_bytes = 0;
  std::uint64_t keys_sent = 0;
  std::uint64_t key_bytes = 0;
  std::uint64_t false_drops = 0;
  Json expected;  // false drops by theory
  Json z;
  std::uint64_t memory = 0;  // at the site that tests
  std::uint64_t page_reads = 0;
  double cpu_seconds = 0;

  std::uint64_t sent() const { return filter_bytes + key_bytes; }
};

// Sends all keys of one site to the other, which looks them up in its table.
Method all_keys(const std::string& name, const Site& from, Site& to,
                std::vector<std::string_view>* matches) {
  Method method;
  method.name = name;
  const double begin = thread_cpu_seconds();
  const std::uint64_t reads = to.table.work().page_reads;
  for (const std::string_view key : from.keys) {
    const bool found = to.table.find(key);
    if (found && matches != nullptr) {
      matches->push_back(key);
    }
    method.false_drops += found ? 0U : 1U;
  }
  method.page_reads = to.table.work().page_reads - reads;
  method.cpu_seconds = to.build_seconds + thread_cpu_seconds() - begin;
  method.keys_sent = from.keys.size();
  method.key_bytes = from.bytes;
  method.memory = to.table.memory_bytes();
  return method;
}

std::string shown_number(const Json& value, const char* format) {
  if (value.is_null()) {
    return "-";
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value.get<double>());
  return text.data();
}

class JoinCommand final : public Command {
 public:
  std::string name() const override { return "join"; }
  std::string summary() const override {
    return "Join the keys of two sites by a filter, and compare bytes, memory and reads with "
           "sending all keys";
  }
  std::string examples() const override {
    return "seq 1000 >r; seq 901 9000 >s; encore-filter join r s\n"
           "encore-filter join r s --fpr 0.001 -o common";
  }
  void declare(Arguments& a) override {
    a.file("R", r_, "keys of the site that sends the filter, one per line; - for standard input");
    a.file("S", s_, "keys of the site that sends its candidates");
    a.real("--fpr", fpr_, "rate of a further filter to compare", kRates);
    a.number("--bits", bits_, "bits of a further filter to compare, with --hashes",
             {.min = 1, .max = kBitsMax});
    a.number("--hashes", hashes_, "hashes per key (k)", {.min = 1, .max = kHashesMax});
    a.text("--hash", hash_, "hash of the filters, as in build");
    a.text("--seed", seed_, "secret of the hash, up to 32 hex digits");
    a.flag("-0,--null", null_, "keys end with a zero byte instead of a newline");
    a.output("-o", output_, "file for the joined keys; -: print them instead of the report");
    a.flag("--no-timing", no_timing_, "leave out the CPU times");
    a.flag("--json", json_, "print a JSON object");
  }
  Result<SearchOutcome> run(const Context& context) override {
    if (auto fine = check_options(); !fine) {
      return std::unexpected(fine.error());
    }
    auto r = read_site(r_, context);
    auto s = r ? read_site(s_, context) : std::unexpected(r.error());
    if (!s) {
      return std::unexpected(s.error());
    }
    std::vector<std::string_view> matches;
    std::vector<Method> methods;
    methods.push_back(all_keys("all of S", *s, *r, &matches));
    methods.push_back(all_keys("all of R", *r, *s, nullptr));
    std::uint64_t matching_bytes = 0;
    for (const std::string_view key : matches) {
      matching_bytes += bytes_of(key);
    }
    if (auto done = add_filters(*r, *s, {matches.size(), matching_bytes}, methods); !done) {
      return std::unexpected(done.error());
    }
    if (auto done = write(matches, context); !done) {
      return std::unexpected(done.error());
    }
    if (output_ != "-") {
      const Json report = report_of(*r, *s, matches.size(), methods);
      if (json_) {
        context.out << report.dump(2) << "\n";
      } else {
        print(report, context.out);
      }
    }
    return matches.empty() ? SearchOutcome::kNothing : SearchOutcome::kSomething;
  }

 private:
  struct Common {
    std::uint64_t keys = 0;
    std::uint64_t bytes = 0;
  };

  Result<void> check_options() {
    if (r_ == "-" && s_ == "-") {
      return fail("R and S both come from standard input, accepted: one of them");
    }
    if ((bits_ != 0) != (hashes_ != 0) || (bits_ != 0 && fpr_ != 0)) {
      return fail("accepted for a further filter: --fpr, or --bits and --hashes");
    }
    const auto family = parse_hash_family(hash_);
    if (!family) {
      return std::unexpected(family.error());
    }
    family_ = *family;
    if (!seed_.empty()) {
      const auto seed = parse_seed(seed_);
      if (!seed) {
        return std::unexpected(seed.error());
      }
      filter_seed_ = *seed;
    }
    return {};
  }

  Result<Site> read_site(const std::string& path, const Context& context) const {
    Site site{.table = LinearHashTable(), .keys = {}};
    const double begin = thread_cpu_seconds();
    KeyReader reader(
        {.paths = {path}, .in = context.in, .end = null_ ? KeyEnd::kNull : KeyEnd::kLine},
        context.monitor);
    for (auto some = reader.next(); !some || !some->empty(); some = reader.next()) {
      if (!some) {
        return std::unexpected(some.error());
      }
      site.lines += some->size();
      for (const std::string_view key : *some) {
        if (const auto kept = site.table.add(key)) {
          site.keys.push_back(*kept);
          site.bytes += bytes_of(*kept);
        }
      }
    }
    site.build_seconds = thread_cpu_seconds() - begin;
    return site;
  }

  // The planned filter, as if no key matched; the best one, with the result known; a given one.
  Result<void> add_filters(Site& r, const Site& s, const Common& common,
                           std::vector<Method>& methods) const {
    struct Wanted {
      const char* name;
      JoinFilter filter;
    };
    const auto keys = static_cast<double>(r.keys.size());
    const JoinPlan planned = plan_join(keys, static_cast<double>(s.bytes));
    const JoinPlan best = plan_join(keys, static_cast<double>(s.bytes - common.bytes));
    std::vector<Wanted> all = {{"filter, planned", {planned.bits, planned.hashes}},
                               {"filter, best", {best.bits, best.hashes}}};
    if (bits_ != 0) {
      all.push_back({"filter, given", {bits_, static_cast<std::uint32_t>(hashes_)}});
    } else if (fpr_ != 0 && keys > 0) {
      const ClassicSizing sizing = size_classic({keys, fpr_});
      all.push_back({"filter, given", {sizing.bits, sizing.hashes}});
    }
    for (const Wanted& wanted : all) {
      // Sending all keys is cheaper.
      if (wanted.filter.bits == 0) {
        continue;
      }
      auto method = by_filter(wanted.name, wanted.filter, r, s, common.keys);
      if (!method) {
        return std::unexpected(method.error());
      }
      methods.push_back(std::move(*method));
    }
    return {};
  }

  Result<Method> by_filter(const std::string& name, const JoinFilter& wanted, Site& r,
                           const Site& s, std::uint64_t common) const {
    const double begin = thread_cpu_seconds();
    auto filter = BloomFilter::create({.layout = Layout::kClassic,
                                       .hash = family_,
                                       .bits = wanted.bits,
                                       .hashes = wanted.hashes,
                                       .capacity = std::max<std::uint64_t>(1, r.keys.size()),
                                       .seed = filter_seed_});
    if (!filter) {
      return std::unexpected(filter.error());
    }
    for (const std::string_view key : r.keys) {
      filter->add(key);
    }
    const FilterShape shape = filter->parameters().shape();
    Method method;
    method.name = name;
    method.filter = {shape.bits, shape.hashes};
    method.filter_bytes = method.memory = (shape.bits + 7) / 8;
    const std::uint64_t reads = r.table.work().page_reads;
    std::uint64_t joined = 0;
    for (const std::string_view key : s.keys) {
      if (!filter->test(key)) {
        continue;
      }
      ++method.keys_sent;
      method.key_bytes += bytes_of(key);
      const bool found = r.table.find(key);
      joined += found ? 1U : 0U;
      method.false_drops += found ? 0U : 1U;
    }
    ENCORE_CHECK(joined == common, "a filter has no false negative");
    method.page_reads = r.table.work().page_reads - reads;
    method.cpu_seconds = r.build_seconds + thread_cpu_seconds() - begin;
    const auto absent = static_cast<double>(s.keys.size() - common);
    const std::uint64_t keys = r.keys.size();
    const double p = fpr_exact(shape, keys).value_or(fpr(shape, static_cast<double>(keys)));
    method.expected = absent * p;
    // The filter's own fill varies as well.
    const double set = expected_set_bits(shape, static_cast<double>(keys));
    const double by_fill =
        set == 0 ? 0
                 : absent * p * shape.hashes *
                       std::sqrt(set_bits_variance(shape, static_cast<double>(keys))) / set;
    const double variance = absent * p * (1 - p) + by_fill * by_fill;
    if (variance > 0) {
      method.z = (static_cast<double>(method.false_drops) - absent * p) / std::sqrt(variance);
    }
    return method;
  }

  Result<void> write(const std::vector<std::string_view>& matches, const Context& context) const {
    if (output_.empty()) {
      return {};
    }
    std::string text;
    for (const std::string_view key : matches) {
      text.append(key);
      text.push_back(null_ ? '\0' : '\n');
    }
    if (output_ == "-") {
      context.out << text;
      return {};
    }
    return replace_file(output_, text);
  }

  static Json of_site(const Site& site) {
    const LinearHashTable& table = site.table;
    return {{"lines", site.lines},
            {"keys", site.keys.size()},
            {"bytes", site.bytes},
            {"buckets", table.buckets()},
            {"load", table.load()},
            {"level", table.level()},
            {"split_pointer", table.split_pointer()},
            {"overflow_pages", table.overflow_pages()},
            {"splits", table.work().splits},
            {"keys_moved", table.work().keys_moved},
            {"memory_bytes", table.memory_bytes()}};
  }

  Json report_of(const Site& r, const Site& s, std::uint64_t common,
                 const std::vector<Method>& methods) const {
    Json report = {{"r", of_site(r)}, {"s", of_site(s)}, {"joined", common}};
    Json rows = Json::array();
    for (const Method& method : methods) {
      const bool filtered = method.filter.bits != 0;
      rows.push_back({{"sent", method.name},
                      {"bits", filtered ? Json(method.filter.bits) : Json()},
                      {"hashes", filtered ? Json(method.filter.hashes) : Json()},
                      {"filter_bytes", filtered ? Json(method.filter_bytes) : Json()},
                      {"keys_sent", method.keys_sent},
                      {"key_bytes", method.key_bytes},
                      {"bytes", method.sent()},
                      {"false_drops", method.false_drops},
                      {"false_drops_expected", method.expected},
                      {"z", method.z},
                      {"memory_bytes", method.memory},
                      {"page_reads", method.page_reads}});
      if (!no_timing_) {
        rows.back()["cpu_seconds"] = method.cpu_seconds;
      }
    }
    report["rows"] = std::move(rows);
    return report;
  }

  void print(const Json& report, std::ostream& out) const {
    std::array<char, 240> line{};
    for (const char* site : {"r", "s"}) {
      const Json& of = report[site];
      std::snprintf(line.data(), line.size(),
                    "%s: %llu keys, linear hashing: %llu buckets of 8, load %.2f, %llu overflow "
                    "pages, %llu splits, %llu keys moved\n",
                    *site == 'r' ? "R" : "S", of["keys"].get<unsigned long long>(),
                    of["buckets"].get<unsigned long long>(), of["load"].get<double>(),
                    of["overflow_pages"].get<unsigned long long>(),
                    of["splits"].get<unsigned long long>(),
                    of["keys_moved"].get<unsigned long long>());
      out << line.data();
    }
    out << "joined: " << report["joined"].dump() << " keys\n";
    print_rows(report["rows"], out);
  }

  void print_rows(const Json& rows, std::ostream& out) const {
    const auto put = [&](const std::array<std::string, 12>& cells, const std::string& time) {
      constexpr std::array kWidths = {-16, 10, 4, 9, 10, 11, 9, 13, 10, 7, 10, 12};
      for (std::size_t i = 0; i < cells.size(); ++i) {
        std::array<char, 64> text{};
        std::snprintf(text.data(), text.size(), "%*s", kWidths[i], cells[i].c_str());
        out << text.data();
      }
      out << (no_timing_ ? "" : std::string(10 - std::min<std::size_t>(9, time.size()), ' ') + time)
          << "\n";
    };
    put({"sent", "bits", "k", "filter", "keys", "of bytes", "bytes", "false drops", "expected", "z",
         "memory", "page reads"},
        "CPU ms");
    for (const Json& row : rows) {
      const auto number = [&](const char* key) {
        return row[key].is_null() ? std::string("-") : row[key].dump();
      };
      put({row["sent"].get<std::string>(), number("bits"), number("hashes"), number("filter_bytes"),
           number("keys_sent"), number("key_bytes"), number("bytes"), number("false_drops"),
           shown_number(row["false_drops_expected"], "%.1f"), shown_number(row["z"], "%.2f"),
           format_bytes(row["memory_bytes"].get<std::uint64_t>()), number("page_reads")},
          no_timing_ ? "" : shown_number(Json(1e3 * row["cpu_seconds"].get<double>()), "%.2f"));
    }
  }

  std::string r_;
  std::string s_;
  double fpr_ = 0;
  std::uint64_t bits_ = 0;
  std::uint64_t hashes_ = 0;
  std::string hash_ = "xxh3";
  std::string seed_;
  bool null_ = false;
  std::string output_;
  bool no_timing_ = false;
  bool json_ = false;
  HashFamily family_ = HashFamily::kXxh3;
  Seed filter_seed_;
};

}  // namespace

std::unique_ptr<Command> make_join_command() { return std::make_unique<JoinCommand>(); }

}  // namespace encore::filter
