#include "sim/sweep/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

namespace encore::sim {
namespace {

// Options that tell observations of one setting apart.
constexpr std::array<std::string_view, 2> kSeeds = {"seed", "sample-seed"};
// They tell a report's rows apart, which have no options.
constexpr std::array<std::string_view, 6> kOfReports = {
    "eviction", "admission", "admission_parameter", "capacity", "fpr_goal", "cache_bytes"};

const Row* inner(const Row& line, std::string_view key) {
  const Value* const value = find(line, key);
  return value == nullptr ? nullptr : std::get_if<Row>(value);
}

struct Text {
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(std::uint64_t value) const { return std::to_string(value); }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return to_json_line({Field{"", value}}).substr(4); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  template <typename Other>
  std::string operator()(const Other& /*value*/) const {
    return {};
  }
};

std::string text_of_value(const Value& value) {
  std::string text = std::visit(Text{}, value);
  if (std::holds_alternative<double>(value)) text.pop_back();
  return text;
}

struct Number {
  double operator()(double value) const { return value; }
  double operator()(std::uint64_t value) const { return static_cast<double>(value); }
  double operator()(std::int64_t value) const { return static_cast<double>(value); }
  template <typename Other>
  double operator()(const Other& /*value*/) const {
    return 0;
  }
};

double number_in(const Row& row, std::string_view key) {
  const Value* const value = find(row, key);
  return value == nullptr ? 0 : std::visit(Number{}, *value);
}

bool has_number(const Row& row, std::string_view key) {
  const Value* const value = find(row, key);
  return value != nullptr && !std::holds_alternative<std::monostate>(*value);
}

// An option, or what a report's row says of itself.
std::optional<std::string> option_of(const Row& line, std::string_view name) {
  for (const std::string_view part : {"options", "result"}) {
    const Row* const row = inner(line, part);
    const Value* const value = row == nullptr ? nullptr : find(*row, name);
    if (value != nullptr) return text_of_value(*value);
  }
  return std::nullopt;
}

std::string seed_of(const Row& line) {
  std::string seed;
  for (const std::string_view name : kSeeds) seed += option_of(line, name).value_or("") + " ";
  return seed;
}

const std::vector<Row>& parts_of(const Row& line) {
  static const std::vector<Row> none;
  const Row* const result = inner(line, "result");
  const Value* const parts = result == nullptr ? nullptr : find(*result, "parts");
  const auto* const rows = parts == nullptr ? nullptr : std::get_if<std::vector<Row>>(parts);
  return rows == nullptr ? none : *rows;
}

// A share of something requested, and its counts.
struct Share {
  std::string_view ratio;
  std::string_view part;
  std::string_view whole;
};
constexpr Share kHits{"object_hit_ratio", "hits", "requests"};
constexpr Share kByteHits{"byte_hit_ratio", "bytes_hit", "bytes_requested"};

double difference(const Row& first, const Row& second, const Share& share) {
  return number_of(second, share.ratio) - number_of(first, share.ratio);
}

// How far each part moves the difference of two ratios: the residual of a ratio estimate.
std::vector<double> moved_by_parts(const Row& first, const Row& second, const Share& share) {
  const double value = difference(first, second, share);
  const auto& a = parts_of(first);
  const auto& b = parts_of(second);
  double whole = 0;
  for (const Row& part : a) whole += number_in(part, share.whole);
  std::vector<double> moved;
  for (std::size_t i = 0; i < a.size(); ++i) {
    moved.push_back((number_in(b[i], share.part) - number_in(a[i], share.part) -
                     value * number_in(a[i], share.whole)) /
                    std::max(whole, 1.0));
  }
  return moved;
}

Estimate by_parts(const Row& first, const Row& second, const Share& share) {
  return estimate_by_parts(difference(first, second, share), moved_by_parts(first, second, share));
}

std::optional<Estimate> written_by_parts(const Row& first, const Row& second) {
  const double all = written_of(first);
  if (all == 0) return std::nullopt;
  const double share = written_of(second) / all;
  const auto& a = parts_of(first);
  const auto& b = parts_of(second);
  std::vector<double> moved;
  for (std::size_t i = 0; i < a.size(); ++i) {
    moved.push_back((number_in(b[i], "bytes_written") - share * number_in(a[i], "bytes_written")) /
                    all);
  }
  return estimate_by_parts(share - 1, moved);
}

Estimate exactly(double value) { return {.value = value, .low = value, .high = value}; }

std::optional<double> written_more(const Row& first, const Row& second) {
  const double all = written_of(first);
  return all == 0 ? std::nullopt : std::optional(written_of(second) / all - 1);
}
std::optional<Estimate> written_exactly(const Row& first, const Row& second) {
  const auto more = written_more(first, second);
  return more ? std::optional(exactly(*more)) : std::nullopt;
}

double half_width(const Row& line, std::string_view ratio) {
  const std::string name(ratio);
  return (number_of(line, name + "_high") - number_of(line, name + "_low")) / 2;
}

// The interval of a value by the degrees of freedom that a sample's interval has
// (sim/replay/sample_estimate.h).
Estimate with_half_width(double value, double half) {
  constexpr double kDegrees = 7;
  const double error = half / student_quantile(0.95, kDegrees);
  return {.value = value,
          .low = value - half,
          .high = value + half,
          .certainty = error > 0 ? student_cdf(std::abs(value) / error, kDegrees) : 1};
}

Estimate by_samples(const Row& first, const Row& second, const Share& share) {
  const double half = std::hypot(half_width(first, share.ratio), half_width(second, share.ratio));
  return with_half_width(difference(first, second, share), half);
}

bool is_sampled(const Row& line) {
  const Row* const result = inner(line, "result");
  return result != nullptr && has_number(*result, "object_hit_ratio_low");
}

using Pairs = std::vector<std::pair<const Row*, const Row*>>;

// Takes the other interval's width if that is larger.
void widen(Estimate& estimate, const Estimate& other) {
  const double half = (other.high - other.low) / 2;
  if (half > (estimate.high - estimate.low) / 2) {
    estimate.low = estimate.value - half;
    estimate.high = estimate.value + half;
    estimate.certainty = other.certainty;
  }
}

void fill_by_seeds(const Pairs& pairs, Compared& compared) {
  std::vector<double> hits;
  std::vector<double> bytes;
  std::vector<double> written;
  for (const auto& [a, b] : pairs) {
    hits.push_back(difference(*a, *b, kHits));
    compared.by_seed[seed_of(*a)] = hits.back();
    bytes.push_back(difference(*a, *b, kByteHits));
    if (const auto more = written_more(*a, *b)) written.push_back(*more);
  }
  compared.source = IntervalSource::kSeeds;
  compared.hits = estimate_mean(hits);
  compared.byte_hits = estimate_mean(bytes);
  if (written.size() == pairs.size()) compared.written = estimate_mean(written);
  // Seeds say nothing of another trace: where they hardly matter, the trace's parts say more.
  const auto& [a, b] = pairs.front();
  if (parts_of(*a).empty() || parts_of(*a).size() != parts_of(*b).size()) return;
  compared.moved = moved_by_parts(*a, *b, kHits);
  const Estimate hits_by_part = estimate_by_parts(compared.hits.value, compared.moved);
  if (hits_by_part.high - hits_by_part.low > compared.hits.high - compared.hits.low) {
    compared.source = IntervalSource::kParts;
  }
  widen(compared.hits, hits_by_part);
  widen(compared.byte_hits, by_parts(*a, *b, kByteHits));
  const auto written_by_part = written_by_parts(*a, *b);
  if (compared.written && written_by_part) widen(*compared.written, *written_by_part);
}

Compared compare_setting(const Pairs& pairs) {
  const Row& a = *pairs.front().first;
  const Row& b = *pairs.front().second;
  Compared compared;
  compared.trace = text_of(a, "trace");
  compared.pairs = pairs.size();
  for (const auto& [first, second] : pairs) {
    compared.first += number_of(*first, kHits.ratio) / static_cast<double>(pairs.size());
    compared.second += number_of(*second, kHits.ratio) / static_cast<double>(pairs.size());
  }
  if (pairs.size() > 1) {
    fill_by_seeds(pairs, compared);
  } else if (!parts_of(a).empty() && parts_of(a).size() == parts_of(b).size()) {
    compared.source = IntervalSource::kParts;
    compared.moved = moved_by_parts(a, b, kHits);
    compared.hits = estimate_by_parts(difference(a, b, kHits), compared.moved);
    compared.byte_hits = by_parts(a, b, kByteHits);
    compared.written = written_by_parts(a, b);
  } else if (is_sampled(a) && is_sampled(b)) {
    compared.source = IntervalSource::kSample;
    compared.hits = by_samples(a, b, kHits);
    compared.byte_hits = by_samples(a, b, kByteHits);
    compared.written = written_exactly(a, b);
  } else {
    compared.hits = exactly(difference(a, b, kHits));
    compared.byte_hits = exactly(difference(a, b, kByteHits));
    compared.written = written_exactly(a, b);
  }
  return compared;
}

double mean_value(std::span<const Compared* const> settings) {
  double sum = 0;
  for (const Compared* one : settings) sum += one->hits.value;
  return sum / static_cast<double>(settings.size());
}

// The mean of what each part of the trace does to the settings, which all have these parts. Empty
// if they do not.
std::vector<double> mean_moved(std::span<const Compared* const> settings) {
  std::vector<double> mean(settings.front()->moved.size());
  for (const Compared* one : settings) {
    if (one->moved.size() != mean.size()) return {};
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] += one->moved[i] / static_cast<double>(settings.size());
    }
  }
  return mean;
}

// The same by seeds.
std::vector<double> mean_by_seed(std::span<const Compared* const> settings) {
  std::map<std::string, double> mean;
  for (const auto& [seed, value] : settings.front()->by_seed) mean[seed] = 0;
  for (const Compared* one : settings) {
    for (const auto& [seed, value] : one->by_seed) {
      if (!mean.contains(seed) || one->by_seed.size() != mean.size()) return {};
      mean[seed] += value / static_cast<double>(settings.size());
    }
    if (one->by_seed.size() != mean.size()) return {};
  }
  std::vector<double> values;
  for (const auto& [seed, value] : mean) values.push_back(value);
  return values;
}

// The mean over settings of one trace. If they have neither parts nor seeds in common, all may
// err together: the interval is as wide as theirs on average.
MeanDifference mean_of_trace(std::span<const Compared* const> settings) {
  MeanDifference mean{.hits = exactly(mean_value(settings))};
  const std::vector<double> moved = mean_moved(settings);
  const std::vector<double> seeds = mean_by_seed(settings);
  if (!seeds.empty()) {
    mean.hits = estimate_mean(seeds);
    mean.source = IntervalSource::kSeeds;
  }
  if (!moved.empty()) {
    const Estimate by_part = estimate_by_parts(mean.hits.value, moved);
    const double before = mean.hits.high - mean.hits.low;
    widen(mean.hits, by_part);
    mean.source = mean.hits.high - mean.hits.low > before || seeds.empty() ? IntervalSource::kParts
                                                                           : mean.source;
  }
  if (!seeds.empty() || !moved.empty()) return mean;
  double half = 0;
  for (const Compared* one : settings) {
    half += (one->hits.high - one->hits.low) / 2 / static_cast<double>(settings.size());
    mean.source = std::max(mean.source, one->source);
  }
  if (half > 0) mean.hits = with_half_width(mean.hits.value, half);
  return mean;
}

MeanDifference mean_of(const std::vector<Compared>& settings) {
  if (settings.size() == 1) return {.hits = settings[0].hits, .source = settings[0].source};
  std::map<std::string, std::vector<const Compared*>> traces;
  for (const Compared& one : settings) traces[one.trace].push_back(&one);
  if (traces.size() == 1) return mean_of_trace(traces.begin()->second);
  std::vector<double> means;
  for (const auto& [trace, its] : traces) means.push_back(mean_value(its));
  return {.hits = estimate_mean(means), .traces = means.size(), .source = IntervalSource::kTraces};
}

// Lines by trace and setting, in the order in which they come, then by seed.
struct Settings {
  std::vector<std::pair<std::string, std::map<std::string, const Row*>>> all;
  std::unordered_map<std::string, std::size_t> places;
};

using Options = std::vector<std::pair<std::string, std::string>>;

Settings settings_of(const std::vector<Row>& rows, const Options& without) {
  Settings settings;
  for (const Row& row : rows) {
    const std::string key = text_of(row, "trace") + "\n" + setting_of(row, without);
    const auto [at, is_new] = settings.places.emplace(key, settings.all.size());
    if (is_new) settings.all.emplace_back(key, std::map<std::string, const Row*>());
    settings.all[at->second].second.emplace(seed_of(row), &row);
  }
  return settings;
}

// All values of each option.
std::map<std::string, std::set<std::string>> values_of(const std::vector<Row>& rows) {
  std::map<std::string, std::set<std::string>> values;
  for (const Row& row : rows) {
    const Row* const options = inner(row, "options");
    if (options == nullptr) continue;
    for (const Field& option : *options) values[option.key].insert(text_of_value(option.value));
  }
  return values;
}

// Options that only one of the two has, with one value: the window of a filter, where the other one
// has no filter. They belong to what is compared.
Options of_one_side(const std::vector<Row>& first, const std::vector<Row>& second) {
  const auto a = values_of(first);
  const auto b = values_of(second);
  Options lone;
  for (const auto& [here, there] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    for (const auto& [name, values] : *here) {
      if (values.size() == 1 && !there->contains(name)) lone.emplace_back(name, *values.begin());
    }
  }
  return lone;
}

// Takes a value from the front of the text, which then is empty or begins with a comma. Nothing if
// a quotation mark has no other one, or no comma follows that.
std::optional<std::string> take_value(std::string_view& text) {
  if (!text.starts_with('"')) {
    const std::string_view value = text.substr(0, text.find(','));
    text.remove_prefix(value.size());
    return std::string(value);
  }
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool twice = text.substr(i).starts_with("\"\"");
    if (text[i] == '"' && !twice) {
      text.remove_prefix(i + 1);
      return text.empty() || text.front() == ',' ? std::optional(value) : std::nullopt;
    }
    value += text[i];
    i += twice ? 1U : 0U;
  }
  return std::nullopt;
}

Row without_options(const Row& line, const Selection& selection) {
  Row kept = line;
  for (Field& field : kept) {
    auto* const row = std::get_if<Row>(&field.value);
    if (row == nullptr || (field.key != "options" && field.key != "result")) continue;
    std::erase_if(*row, [&](const Field& option) {
      return std::ranges::find(selection.options, option.key,
                               &std::pair<std::string, std::string>::first) !=
             selection.options.end();
    });
  }
  return kept;
}

}  // namespace

std::string_view to_string(IntervalSource source) {
  switch (source) {
    case IntervalSource::kParts:
      return "parts";
    case IntervalSource::kSeeds:
      return "seeds";
    case IntervalSource::kSample:
      return "samples";
    case IntervalSource::kTraces:
      return "traces";
    default:
      return "exact";
  }
}

double number_of(const Row& line, std::string_view key) {
  const Row* const result = inner(line, "result");
  return result == nullptr ? 0 : number_in(*result, key);
}

double written_of(const Row& line) {
  const Row* const result = inner(line, "result");
  const bool has_disk = result != nullptr && has_number(*result, "disk_bytes_written");
  return number_of(line, has_disk ? "disk_bytes_written" : "bytes_written");
}

std::string text_of(const Row& line, std::string_view key) {
  const Value* const value = find(line, key);
  return value == nullptr ? std::string() : text_of_value(*value);
}

std::string setting_of(const Row& line,
                       const std::vector<std::pair<std::string, std::string>>& without) {
  const Row* const options = inner(line, "options");
  const Row* const result = inner(line, "result");
  std::string setting;
  const auto add = [&](const std::string& name, const std::string& text) {
    const bool left_out =
        std::ranges::find(kSeeds, name) != kSeeds.end() ||
        std::ranges::find(without, name, &std::pair<std::string, std::string>::first) !=
            without.end();
    if (!left_out && !text.empty()) setting += (setting.empty() ? "" : " ") + name + "=" + text;
  };
  if (options != nullptr && !options->empty()) {
    Row sorted = *options;
    std::ranges::sort(sorted, {}, &Field::key);
    for (const Field& option : sorted) add(option.key, text_of_value(option.value));
  } else if (result != nullptr) {
    for (const std::string_view name : kOfReports) {
      const Value* const value = find(*result, name);
      if (value != nullptr) add(std::string(name), text_of_value(*value));
    }
  }
  return setting;
}

Result<Selection> parse_selection(const std::string& text) {
  Selection selection{.path = text, .options = {}};
  const std::size_t equals = text.find('=');
  const std::size_t colon = text.rfind(':', equals);
  if (equals == std::string::npos || colon == std::string::npos) return selection;
  selection.path = text.substr(0, colon);
  std::string_view left = std::string_view(text).substr(colon + 1);
  while (true) {
    const std::size_t at = left.find('=');
    std::string_view name = left.substr(0, at);
    if (at != std::string_view::npos) left.remove_prefix(at + 1);
    const auto value = at == std::string_view::npos ? std::nullopt : take_value(left);
    if (!value || value->empty() || name.empty() || name.contains(',')) {
      return fail("'" + text +
                  "', accepted: FILE or FILE:OPTION=VALUE,OPTION=VALUE; a value with a comma "
                  "stands in quotation marks, as eviction=\"s3-fifo(small=0.2,ghost=2)\"");
    }
    selection.options.emplace_back(name, *value);
    if (left.empty()) return selection;
    left.remove_prefix(1);
  }
}

Result<std::vector<Row>> selected(const Selection& selection, std::vector<Row> rows) {
  for (const auto& [name, wanted] : selection.options) {
    std::vector<std::string> there;
    std::vector<Row> kept;
    for (Row& row : rows) {
      const std::string text = option_of(row, name).value_or("");
      if (text == wanted) {
        kept.push_back(std::move(row));
      } else if (!text.empty() && std::ranges::find(there, text) == there.end()) {
        there.push_back(text);
      }
    }
    if (kept.empty()) {
      std::string listed;
      for (const std::string& text : there) listed += (listed.empty() ? "" : ", ") + text;
      return fail(selection.path + " has nothing with " + name + "=" + wanted +
                  (there.empty() ? ", nor with any " + name : ", accepted: " + listed));
    }
    rows = std::move(kept);
  }
  for (Row& row : rows) row = without_options(row, selection);
  return rows;
}

Result<Comparison> compare(const std::vector<Row>& first, const std::vector<Row>& second) {
  const Options lone = of_one_side(first, second);
  const Settings a = settings_of(first, lone);
  const Settings b = settings_of(second, lone);
  Comparison comparison;
  for (const auto& [key, rows] : a.all) {
    const auto other = b.places.find(key);
    Pairs pairs;
    if (other != b.places.end()) {
      const auto& others = b.all[other->second].second;
      for (const auto& [seed, row] : rows) {
        if (const auto at = others.find(seed); at != others.end()) {
          pairs.emplace_back(row, at->second);
        }
      }
    }
    if (pairs.empty()) {
      ++comparison.only_first;
      continue;
    }
    Compared compared = compare_setting(pairs);
    compared.setting = key.substr(compared.trace.size() + 1);
    comparison.settings.push_back(std::move(compared));
  }
  comparison.only_second = b.all.size() - comparison.settings.size();
  if (comparison.settings.empty()) {
    return fail("no setting is in both, as \"" +
                a.all.front().first.substr(a.all.front().first.find('\n') + 1) + "\" of A and \"" +
                b.all.front().first.substr(b.all.front().first.find('\n') + 1) +
                "\" of B; choose what is to be compared, as results.jsonl:eviction=lru "
                "results.jsonl:eviction=sieve");
  }
  comparison.mean = mean_of(comparison.settings);
  return comparison;
}

}  // namespace encore::sim
