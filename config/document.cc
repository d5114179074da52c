// docs/CONFIG.md out of the schema.
#include <string>

#include "config/dump.h"
#include "config/schema.h"

namespace encore::config {
namespace {

constexpr std::string_view kIntroduction =
    R"(# Configuration

Made from the schema by `./dev docs`; a test compares the two. Do not edit by hand.

`encore --config FILE` reads a [TOML](https://toml.io) file. Every key has a default but those marked
*required*, and so the file itself is optional. `--set section.key=value` sets a key after the file
was read, as often as needed:

```sh
encore --set cache.memory=1GiB --set forward.connect_ports=443,8443 --set listen.0.address=127.0.0.1:8080
encore --set listen.0.mode=reverse --set origin.0.servers=http://127.0.0.1:8000
```

- Elements of `[[listen]]`, `[[origin]]`, `[[rule]]` and `[[disk]]` are counted from 0; the next number makes a new one.
- Lists may be written with commas, or as TOML: `'["10.0.0.0/8", "::1"]'`.
- Bytes: `"4096"`, `"64KiB"`, `"1.5GiB"`, `"10MB"`. Durations: `"250ms"`, `"90s"`, `"2h"`, `"7d"`.
- `encore --check-config` says whether the config is good, and what follows from it: the filter's
  size and false-positive rates, the effective limits. `encore --dump-config` prints every key.
- Every fault is reported, as `file:line:column: key: what is wrong, what is accepted`; the program
  then ends with status 2, or goes on with the config that it has when it was asked to reload.
- SIGHUP reads the file again, all or nothing: a reload that would change a key marked *restart* is
  refused with a message that names it, and the config in force stays.

)";

constexpr std::string_view kWholeFile =
    R"(## The whole file

All keys with their defaults, as `encore --dump-config` prints them, but for those of `[[rule]]` and
`[[disk]]`:

```toml
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string key_row(const Key& key, const void* defaults) {
  const Value value = key.get(defaults);
  std::string usual = "`" + escaped(toml_text(key, value)) + "`";
  if (key.required) usual = "*required*";
  if (is_unset(value)) usual = "";
  std::string row = "| `" + std::string(key.name) + "` | " + usual + " | " +
                    escaped(accepted_text(key)) + " | " + escaped(key.doc);
  if (key.apply == Apply::kRestart) row += " *Restart.*";
  return row + " |\n";
}

std::string section_text(const Section& section, Config& defaults) {
  const std::string name(section.name);
  if (section.repeated) section.resize(defaults, 1);
  std::string text = "## " + (section.repeated ? "[[" + name + "]]" : "[" + name + "]") + "\n\n" +
                     std::string(section.doc) + "\n\n| key | default | accepted | meaning |\n" +
                     "|---|---|---|---|\n";
  for (const auto& key : section.keys) text += key_row(key, section.at(defaults, 0));
  return text + "\n";
}

}  // namespace

std::string document_config() {
  std::string text(kIntroduction);
  Config defaults;
  for (const auto& section : schema()) text += section_text(section, defaults);
  text += kWholeFile;
  defaults.disk.clear();  // required keys of a disk have no default
  defaults.rule.clear();
  text += dump_config(defaults);
  return text + "```\n";
}

}  // namespace encore::config
