// From a file and the command line to a valid Config. Pure but for reading the file, and asking
// which disks are directories; nothing changes anywhere when a config is bad. Thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "config/source_locations.h"

namespace encore::config {

// Sources of a config. `path` empty means no file, all defaults. `sets` are the values of --set,
// "section.key=value", applied in order after the file; elements of [[listen]], [[origin]] and
// [[disk]] are addressed by number, "listen.0.address=127.0.0.1:80", and created if the number is
// the next one. A list is written with commas: "forward.connect_ports=443,8443".
struct Sources {
  std::string path;
  std::vector<std::string> sets;
};

// Every fault is reported, a line each: `file:line:column: key: what is wrong, what is accepted`,
// or `--set section.key=value: what is wrong, what is accepted`.
// Fills in `places` where it is asked for and the config is good.
Result<Config> load_config(const Sources& sources, SourceLocations* places = nullptr);

// The name of a disk's file in a directory.
inline constexpr std::string_view kDiskFileName = "disk";
// Returns the file of the disk that a config names by this path: a file in it for a directory, or a
// path that ends in "/"; else the path.
std::string disk_file_of(const std::string& path);

// The same from text, with the paths of disks as they are written; `name` stands for the file in
// messages.
Result<Config> parse_config(std::string_view toml, std::string_view name,
                            std::span<const std::string> sets = {});

// A fault that was found later, outside of the config, as those above are written:
// "file:line:column: key: what is wrong".
std::string fault_text(const SourceLocations& places, std::string_view key, std::string_view what);

}  // namespace encore::config
