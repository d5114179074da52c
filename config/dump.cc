#include "config/dump.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "config/schema.h"
#include "filter/hash.h"

namespace encore::config {
namespace {

// The schema's accessor takes a Config that may be changed; here nothing is.
const void* element(const Section& section, const Config& config, std::size_t index) {
  return section.at(const_cast<Config&>(config), index);
}

std::string secret_line(const Key& key, const Value& value) {
  const auto& text = std::get<std::string>(value);
  std::string line = std::string(key.name) + " = \"\"";
  if (text.empty()) return line;
  line += "  # set, not shown";
  if (key.name != "seed") return line;
  const auto seed = filter::parse_seed(text);
  return line + "; fingerprint " + (seed ? filter::fingerprint(*seed) : std::string());
}

std::string dump_element(const Section& section, const void* values) {
  const std::string name(section.name);
  std::string text = section.repeated ? "[[" + name + "]]\n" : "[" + name + "]\n";
  for (const auto& key : section.keys) {
    const Value value = key.get(values);
    if (is_unset(value)) continue;
    text += key.secret ? secret_line(key, value)
                       : std::string(key.name) + " = " + toml_text(key, value);
    text += '\n';
  }
  return text;
}

ShownValue show(std::string path, const Key& key, const Value& value) {
  if (key.secret) return {.path = std::move(path), .toml = {}, .text = {}, .is_secret = true};
  std::string toml = toml_text(key, value);
  std::string text = toml;
  if (key.kind == Kind::kText) {
    text = std::get<std::string>(value);
  } else if (text.starts_with('"')) {
    text = text.substr(1, text.size() - 2);  // a size, a time or a choice: nothing is escaped
  }
  return {.path = std::move(path), .toml = std::move(toml), .text = std::move(text)};
}

// "cache.memory" is below "cache", and below itself.
bool is_below(std::string_view name, std::string_view path) {
  return path.empty() || name == path || (name.starts_with(path) && name[path.size()] == '.');
}

}  // namespace

std::string dump_config(const Config& config) {
  std::string text;
  for (const auto& section : schema()) {
    for (std::size_t i = 0; i < section.count(config); ++i) {
      if (!text.empty()) text += '\n';
      text += dump_element(section, element(section, config, i));
    }
  }
  return text;
}

std::vector<std::string> config_paths(const Config& config) {
  std::vector<std::string> paths;
  for (const auto& section : schema()) {
    for (std::size_t i = 0; i < std::max<std::size_t>(section.count(config), 1); ++i) {
      for (const auto& key : section.keys) paths.push_back(key_path(section, i, key));
    }
  }
  return paths;
}

Result<std::vector<ShownValue>> show_config(const Config& config, std::string_view path) {
  std::vector<ShownValue> shown;
  bool is_known = path.empty() || find_section(path) != nullptr;
  for (const auto& section : schema()) {
    for (std::size_t i = 0; i < section.count(config); ++i) {
      for (const auto& key : section.keys) {
        std::string name = key_path(section, i, key);
        if (!is_below(name, path)) continue;
        is_known = true;
        const Value value = key.get(element(section, config, i));
        if (!is_unset(value)) shown.push_back(show(std::move(name), key, value));
      }
    }
  }
  if (is_known) return shown;
  const std::vector<std::string> paths = config_paths(config);
  const std::vector<std::string_view> names(paths.begin(), paths.end());
  if (std::ranges::find(names, path) != names.end()) return shown;  // a list that is empty
  const std::string_view near = nearest(path, names);
  return fail("unknown key \"" + std::string(path) + "\"" +
              (near.empty() ? "; accepted: SECTION.KEY, as cache.memory"
                            : ", did you mean \"" + std::string(near) + "\"?"));
}

std::vector<ReloadBlocker> reload_blockers(const Config& running, const Config& wanted) {
  std::vector<ReloadBlocker> blockers;
  for (const auto& section : schema()) {
    const std::size_t before = section.count(running);
    const std::size_t after = section.count(wanted);
    for (const auto& key : section.keys) {
      if (key.apply == Apply::kReload) continue;
      for (std::size_t i = 0; i < std::max(before, after); ++i) {
        const bool same =
            i < before && i < after &&
            key.get(element(section, running, i)) == key.get(element(section, wanted, i));
        if (!same) blockers.push_back({key_path(section, i, key), key.apply, key.not_reloaded});
      }
    }
  }
  return blockers;
}

std::string blockers_text(const std::vector<ReloadBlocker>& blockers) {
  const auto list = [&](Apply apply) {
    std::string keys;
    for (const ReloadBlocker& blocker : blockers) {
      if (blocker.apply != apply) continue;
      keys += (keys.empty() ? "" : ", ") + blocker.path + " (" + std::string(blocker.reason) + ")";
    }
    return keys;
  };
  const std::string restart = list(Apply::kRestart);
  if (!restart.empty()) return "a restart is needed for " + restart;
  return "`encore upgrade` is needed for " + list(Apply::kUpgrade) + "; no request fails";
}

}  // namespace encore::config
