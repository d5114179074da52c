// docs/CONFIG.md out of the schema.
#include <string>

#include "config/dump.h"
#include "config/schema.h"

namespace encore::config {
namespace {

constexpr std::string_view kIntroduction =
    R"(# Configuration

`./dev docs` generates this page from the schema. Do not edit it.

`encore --config FILE` reads a [TOML](https://toml.io) file. It is optional: every key that is not *required* has a
default. `--set section.key=value` sets keys after the file is read:

```sh
encore --set cache.memory=1GiB --set forward.connect_ports=443,8443 --set listen.0.address=127.0.0.1:8080
encore --set listen.0.mode=reverse --set origin.0.servers=http://127.0.0.1:8000
```

- Each key has its default, the accepted values in parentheses (else true or false), and its meaning. *Upgrade*: a reload
  cannot change it, [an upgrade](UPGRADE.md) can, without a failed request. *Restart*: only a new start changes it.
- Elements of `[[listen]]`, `[[origin]]`, `[[rule]]` and `[[disk]]` are counted from 0; the next number adds one.
- Lists are written with commas or as TOML: `'["10.0.0.0/8", "::1"]'`.
- Bytes: `"4096"`, `"64KiB"`, `"1.5GiB"`, `"10MB"`. Durations: `"250ms"`, `"90s"`, `"2h"`, `"7d"`.
- `encore --check-config` checks the configuration and prints derived values. `encore --dump-config` prints a complete
  file with all keys.
- Errors name file, line, column, key, fault and accepted values, and end the program with status 2.
- SIGHUP reloads the file, all or nothing ([how](OPERATIONS.md#reload)).

)";

// "- **`name`** `default` (accepted): meaning."
std::string key_item(const Key& key, const void* defaults) {
  const Value value = key.get(defaults);
  std::string item = "- **`" + std::string(key.name) + "`** ";
  if (key.required) {
    item += "*required* ";
  } else if (!is_unset(value)) {
    item += "`" + toml_text(key, value) + "` ";
  }
  if (key.kind != Kind::kBool) item += "(" + accepted_text(key) + ")";
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
                     std::string(section.doc) + "\n\n";
  for (const auto& key : section.keys) text += key_item(key, section.at(defaults, 0));
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
