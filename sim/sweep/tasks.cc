#include "sim/sweep/tasks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <unordered_set>

#include "cache/options.h"
#include "filter/hash.h"

namespace encore::sim {
namespace {

constexpr std::string_view kSizes = "cache-size";
constexpr int kForm = 2;  // the form of names and results

std::string_view value_of(const TaskOptions& options, std::string_view name,
                          std::string_view missing) {
  const auto at = std::ranges::find(options, name, &TaskOptions::value_type::first);
  return at == options.end() ? missing : std::string_view(at->second);
}

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

constexpr std::array<std::string_view, 7> kOfFilters = {
    "fpr", "bits", "hashes", "layout", "hash", "rotate-after", "no-refresh"};
constexpr std::array<std::string_view, 6> kOfProbation = {"window",   "write-cost", "copies",
                                                          "wait-max", "no-fill",    "fill"};
constexpr std::array<std::string_view, 3> kOfOne = {"min-requests", "probability",
                                                    "size-threshold"};
constexpr std::array<std::string_view, 3> kTheOne = {"nth-hit", "probability", "size-threshold"};

constexpr std::array<std::string_view, 2> kOfBounds = {"balance-factor", "balance-load"};
constexpr std::array<std::string_view, 2> kOfParents = {"parents", "parent-cache-bytes"};
constexpr std::array<std::string_view, 2> kOfNodes = {"balance", "fail-node"};

bool has_parents(const TaskOptions& options) { return value_of(options, "tier", "one") == "two"; }

// Whether the option changes a run with these others.
bool matters(std::string_view option, const TaskOptions& options) {
  const std::string_view admission = value_of(options, "admission", "always");
  const bool on_probation = admission == "probation" || admission == "proxy-probation";
  const auto policy = cache::parse_admission(admission);
  const bool has_nodes = value_of(options, "nodes", "1") != "1";
  if (option == "eviction") return admission != "probation";
  if (option == "capacity") return on_probation || (policy && cache::has_window(*policy));
  if (is_one_of(kOfFilters, option) || option == "shadow") {
    return on_probation || (policy && cache::has_filter(*policy));
  }
  if (option == "write-cost" && value_of(options, "window", "samples") != "samples") return false;
  if (is_one_of(kOfProbation, option)) return on_probation;
  if (is_one_of(kOfBounds, option)) {
    return has_nodes && value_of(options, "balance", "random") == "bounded";
  }
  if (is_one_of(kOfParents, option)) return has_parents(options);
  if (is_one_of(kOfNodes, option)) return has_nodes;
  if (option == "memory") return has_nodes || has_parents(options);
  const auto* const one = std::ranges::find(kOfOne, option);
  return one == kOfOne.end() ||
         kTheOne[static_cast<std::size_t>(one - kOfOne.begin())] == admission;
}

TaskOptions without_idle(const TaskOptions& options) {
  TaskOptions kept;
  for (const auto& option : options) {
    if (matters(option.first, options)) kept.push_back(option);
  }
  return kept;
}

// The text without anything that a file name may not have somewhere.
std::string plain(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool fine = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
    if (fine) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (name.ends_with('-')) name.pop_back();
  return name.substr(0, 40);
}

std::string stem_of(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  return plain(name.substr(0, name.find('.')));
}

std::string hash_of(std::string_view bytes) {
  const filter::Hash128 hash = filter::hash_key(filter::HashFamily::kXxh3, {}, bytes);
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx",
                static_cast<unsigned long long>(hash.lo ^ hash.hi));
  return digits.data();
}

// The file's size and a hash of its beginning and its end: traces of terabytes are not read for a
// name.
Result<std::string> content_of(const std::string& path) {
  constexpr std::uint64_t kPart = 1U << 20U;
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) return fail("cannot read " + path + ": " + error.message());
  std::ifstream file(path, std::ios::binary);
  std::string part(static_cast<std::size_t>(std::min(bytes, 2 * kPart)), '\0');
  const std::uint64_t first = std::min(bytes, kPart);
  file.read(part.data(), static_cast<std::streamsize>(first));
  file.seekg(static_cast<std::streamoff>(bytes - (part.size() - first)));
  file.read(part.data() + first, static_cast<std::streamsize>(part.size() - first));
  if (!file) return fail("cannot read " + path);
  return std::to_string(bytes) + " " + hash_of(part);
}

std::string name_of(const Task& task, const std::string& trace, std::uint64_t parts) {
  std::string content = std::to_string(kForm) + "\n" ENCORE_VERSION "\n" + task.trace.name + "\n" +
                        trace + "\n" + std::to_string(parts) + "\n";
  TaskOptions sorted = task.options;
  std::ranges::sort(sorted);
  for (const auto& [option, text] : sorted) content += option + "=" + text + "\n";
  for (const std::string& size : task.sizes) content += size + ",";
  std::string name = stem_of(task.trace.name);
  for (const std::string_view option : {"eviction", "admission"}) {
    const auto text = value_of(task.options, option, {});
    if (!text.empty()) name += "-" + plain(text);
  }
  return name + "-" + hash_of(content);
}

void set_words(const Sweep& sweep, Task& task) {
  for (const auto& [name, text] : task.options) {
    const auto option = std::ranges::find(sweep.options, name, &SweptOption::name);
    if (!option->is_flag) {
      task.words.push_back("--" + name + "=" + text);
    } else if (text == "true") {
      task.words.push_back("--" + name);
    }
  }
  // By itself `replay` has two admissions.
  if (value_of(task.options, "admission", {}).empty()) task.words.push_back("--admission=always");
  std::string sizes;
  for (const std::string& size : task.sizes) sizes += (sizes.empty() ? "" : ",") + size;
  if (!sizes.empty()) task.words.push_back("--" + std::string(kSizes) + "=" + sizes);
}

// True if parents would give a hint, and this combination has none, but others of the sweep have.
bool is_without_hint(const Sweep& sweep, const TaskOptions& options) {
  const auto tier = std::ranges::find(sweep.options, "tier", &SweptOption::name);
  return value_of(options, "memory", "local") == "hint" && !has_parents(options) &&
         tier != sweep.options.end() && tier->values.size() > 1;
}

// The next combination of indices; false: that was the last.
bool advance(std::vector<std::size_t>& at, const std::vector<const SweptOption*>& options) {
  for (std::size_t i = at.size(); i-- > 0;) {
    if (++at[i] < options[i]->values.size()) return true;
    at[i] = 0;
  }
  return false;
}

// True if the name of an option before this text is the beginning of a longer one.
bool goes_on(std::string_view text) {
  return !text.empty() &&
         (text[0] == '-' || std::isalnum(static_cast<unsigned char>(text[0])) != 0);
}

}  // namespace

Result<std::vector<Task>> plan_tasks(const Sweep& sweep, std::uint64_t parts) {
  std::vector<const SweptOption*> outer;
  std::vector<std::string> sizes;
  for (const SweptOption& option : sweep.options) {
    if (option.name == kSizes) {
      sizes = option.values;
    } else {
      outer.push_back(&option);
    }
  }
  std::vector<Task> tasks;
  std::unordered_set<std::string> names;
  for (const SweptTrace& trace : sweep.traces) {
    const auto content = content_of(trace.path);
    if (!content) return std::unexpected(content.error());
    std::vector<std::size_t> at(outer.size(), 0);
    do {
      Task task{.name = {}, .trace = trace, .options = {}, .sizes = sizes, .words = {}};
      TaskOptions all;
      for (std::size_t i = 0; i < outer.size(); ++i) {
        all.emplace_back(outer[i]->name, outer[i]->values[at[i]]);
      }
      if (is_without_hint(sweep, all)) continue;
      task.options = without_idle(all);
      task.name = name_of(task, *content, parts);
      set_words(sweep, task);
      if (names.insert(task.name).second) tasks.push_back(std::move(task));
    } while (advance(at, outer));
  }
  return tasks;
}

std::string place_of_fault(const Sweep& sweep, const Task& task, std::string_view message) {
  const SweptOption* guilty = nullptr;
  std::size_t first = std::string_view::npos;
  for (const SweptOption& option : sweep.options) {
    const std::string named = "--" + option.name;
    std::size_t at = message.find(named);
    while (at != std::string_view::npos && goes_on(message.substr(at + named.size()))) {
      at = message.find(named, at + 1);
    }
    if (at < first) {
      first = at;
      guilty = &option;
    }
  }
  if (guilty == nullptr) return {};
  const auto is_guilty = [&](const std::string& value) {
    return guilty->name == kSizes ? message.find("\"" + value + "\"") != std::string_view::npos
                                  : value_of(task.options, guilty->name, {}) == value;
  };
  const auto value = std::ranges::find_if(guilty->values, is_guilty);
  const auto index = static_cast<std::size_t>(value - guilty->values.begin());
  return index < guilty->places.size() ? guilty->places[index] : guilty->place;
}

}  // namespace encore::sim
