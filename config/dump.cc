#include "config/dump.h"

#include <algorithm>

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
  const auto seed = filter::parse_seed(text);
  return line + "  # set, not shown; fingerprint " +
         (seed ? filter::fingerprint(*seed) : std::string());
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

std::vector<std::string> reload_blockers(const Config& running, const Config& wanted) {
  std::vector<std::string> paths;
  for (const auto& section : schema()) {
    const std::size_t before = section.count(running);
    const std::size_t after = section.count(wanted);
    for (const auto& key : section.keys) {
      if (key.apply != Apply::kRestart) continue;
      for (std::size_t i = 0; i < std::max(before, after); ++i) {
        const bool same =
            i < before && i < after &&
            key.get(element(section, running, i)) == key.get(element(section, wanted, i));
        if (!same) paths.push_back(key_path(section, i, key));
      }
    }
  }
  return paths;
}

}  // namespace encore::config
