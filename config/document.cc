// docs/CONFIG.md out of the schema.
#include <algorithm>
#include <string>
#include <string_view>

#include "config/dump.h"
#include "config/schema.h"

namespace encore::config {
namespace {

constexpr std::string_view kIntroduction =
    R"(# Configuration

`./dev docs` generates this page from the schema. Do not edit it.

`encore --config FILE` reads a [TOML](https://toml.io) file. It is optional: every key has a default, except *required*
ones. `--set section.key=value` sets keys after it:

```sh
encore --set cache.memory=1GiB --set forward.connect_ports=443,8443 --set listen.0.address=127.0.0.1:8080
encore --set listen.0.mode=reverse --set origin.0.servers=http://127.0.0.1:8000
```

- Each key has its default, further accepted values in parentheses (if none, true or false), and its meaning. *Upgrade*: a reload
  cannot change it, [an upgrade](UPGRADE.md) can. *Restart*: only a new start can.
- Elements of `[[listen]]` and the like are counted from 0; the next number adds one.
- Lists are written with commas or as TOML: `'["10.0.0.0/8", "::1"]'`. "up to 16" is their length.
- Bytes: `"4096"`, `"64KiB"`, `"1.5GiB"`, `"10MB"`. Durations: `"250ms"`, `"90s"`, `"2h"`, `"7d"`.
- `--check-config` checks the configuration and prints derived values, `--dump-config` a complete file.
- Errors name file, line, column, key, fault and accepted values, with exit status 2.
- SIGHUP reloads the file, all or nothing ([how](OPERATIONS.md#reload)).

)";

// Returns accepted_text() with ranges as `1..9`.
std::string accepted_ranges(const Key& key) {
  std::string text = accepted_text(key);
  constexpr std::string_view kSpaced = " .. ";
  for (std::size_t at = 0; (at = text.find(kSpaced, at)) != std::string::npos;) {
    text.replace(at, kSpaced.size(), "..");
  }
  return text;
}

// Returns the accepted values without what the default shows: that it is a list, that it is empty
// or zero. `usual` is the default.
std::string shown_accepted(const Key& key, std::string usual) {
  std::string text = accepted_ranges(key);
  constexpr std::string_view kOne = "one, or ";
  constexpr std::string_view kList = "a list of ";
  const std::size_t at = text.starts_with(kOne) ? kOne.size() : 0;
  if (text.compare(at, kList.size(), kList) == 0) text.erase(at, kList.size());
  if (key.zero_is_off) std::erase(usual, '"');
  if (usual != "\"\"" && !usual.starts_with('0')) return text;
  for (const std::string& end : {", or " + usual, " or " + usual}) {
    if (!text.ends_with(end)) continue;
    text.resize(text.size() - end.size());
    break;
  }
  return text;
}

// Returns the accepted values that all keys of the section share, or "" if they differ.
std::string shared_accepted(const Section& section) {
  const std::string text = accepted_ranges(section.keys.front());
  const auto has_it = [&](const Key& key) { return accepted_ranges(key) == text; };
  return section.keys.size() > 1 && std::ranges::all_of(section.keys, has_it) ? text : "";
}

// "- **`name`** `default` (accepted): meaning."; without "(accepted)" if the section states it.
std::string key_item(const Key& key, const void* defaults, bool with_accepted) {
  const std::string usual = key.required ? "" : toml_text(key, key.get(defaults));
  std::string item = "- **`" + std::string(key.name) + "`** ";
  if (key.required) item += "*required* ";
  if (!usual.empty()) item += "`" + usual + "` ";
  if (with_accepted && key.kind != Kind::kBool) item += "(" + shown_accepted(key, usual) + ")";
  while (item.ends_with(' ')) item.pop_back();
  item += ": " + std::string(key.doc);
  if (key.apply == Apply::kUpgrade) item += " *Upgrade.*";
  if (key.apply == Apply::kRestart) item += " *Restart.*";
  return item + "\n";
}

std::string section_text(const Section& section, Config& defaults) {
  const std::string name(section.name);
  if (section.repeated) section.resize(defaults, 1);
  std::string text = "## " + (section.repeated ? "[[" + name + "]]" : "[" + name + "]") + "\n\n" +
                     std::string(section.doc);
  const std::string shared = shared_accepted(section);
  if (!shared.empty()) text += " All accept " + shared + ".";
  text += "\n\n";
  for (const auto& key : section.keys) {
    text += key_item(key, section.at(defaults, 0), shared.empty());
  }
  return text + "\n";
}

}  // namespace

std::string document_config() {
  std::string text(kIntroduction);
  Config defaults;
  for (const auto& section : schema()) text += section_text(section, defaults);
  text.pop_back();  // one line feed ends the page
  return text;
}

}  // namespace encore::config
