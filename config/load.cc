#include "config/load.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "config/draft.h"
#include "config/schema.h"
#include "config/toml_reader.h"

namespace encore::config {
namespace {

constexpr std::size_t kFileBytesMax = 16 * kMiB;
constexpr std::size_t kElementsMax = 1024;

struct SetPath {
  std::string_view section;
  std::optional<std::size_t> index;
  std::string_view key;
};

std::optional<SetPath> split_path(std::string_view path) {
  const auto first = path.find('.');
  const auto last = path.rfind('.');
  if (first == std::string_view::npos) return std::nullopt;
  SetPath result{path.substr(0, first), std::nullopt, path.substr(last + 1)};
  if (first == last) return result;
  const std::string_view digits = path.substr(first + 1, last - first - 1);
  std::size_t index = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (status != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  result.index = index;
  return result;
}

// The element that a --set means, made where it is the next one. Nothing: a fault was noted.
std::optional<std::size_t> element_of(const Section& section, const SetPath& path,
                                      std::string_view where, std::string_view text, Draft& draft) {
  const std::string name(section.name);
  if (!section.repeated) {
    if (!path.index) return 0;
    draft.fault(where, text, "[" + name + "] is not a list; accepted: " + name + ".KEY");
    return std::nullopt;
  }
  const std::size_t count = section.count(draft.config);
  if (!path.index || *path.index > count || *path.index >= kElementsMax) {
    draft.fault(where, text,
                "[[" + name + "]] is a list of " + std::to_string(count) + "; accepted: " + name +
                    ".0.KEY .. " + name + "." + std::to_string(count) + ".KEY");
    return std::nullopt;
  }
  if (*path.index == count) draft.resize(section, count + 1, where);
  return path.index;
}

void apply_set(std::string_view text, Draft& draft) {
  const auto equals = text.find('=');
  const std::string_view left = text.substr(0, equals);
  const std::string where = "--set " + std::string(left);
  const auto path = equals == std::string_view::npos ? std::nullopt : split_path(left);
  if (!path) {
    draft.fault(where, {}, "not section.key=value; accepted: as in --set cache.memory=1GiB");
    return;
  }
  const auto* section = find_section(path->section);
  if (section == nullptr) {
    draft.unknown_section(where, path->section);
    return;
  }
  const auto* key = find_key(*section, path->key);
  if (key == nullptr) {
    draft.unknown_key(where, *section, left, path->key);
    return;
  }
  const auto index = element_of(*section, *path, where, left, draft);
  if (!index) return;
  const auto value = read_set_value(*key, text.substr(equals + 1));
  if (!value) {
    draft.fault(where, left, value.error().message);
    return;
  }
  draft.put(*section, *index, *key, *value, where);
}

std::string error_text() { return std::system_category().message(errno); }

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) return fail(path + ": cannot open: " + error_text());
  std::string text;
  std::string block(64 * kKiB, '\0');
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block, 0, count);
    if (text.size() > kFileBytesMax) {
      return fail(path + ": too large; accepted: up to " + format_bytes(kFileBytesMax));
    }
  }
  if (std::ferror(file.get()) != 0) return fail(path + ": cannot read: " + error_text());
  return text;
}

Result<Config> load(const std::string* toml, std::string_view name,
                    std::span<const std::string> sets, SourceLocations* places) {
  Draft draft;
  // After a syntax error nothing is known of the rest.
  if (toml != nullptr && !read_toml(*toml, name, draft)) return std::move(draft).finish();
  for (const auto& set : sets) apply_set(set, draft);
  draft.cross_check();
  if (places != nullptr) *places = draft.places();
  return std::move(draft).finish();
}

// A disk that is a directory is a file in it.
void name_disk_files(Config& config) {
  for (Disk& disk : config.disk) disk.path = disk_file_of(disk.path);
}

}  // namespace

std::string disk_file_of(const std::string& path) {
  std::error_code ignored;
  if (!path.ends_with('/') && !std::filesystem::is_directory(path, ignored)) return path;
  return (std::filesystem::path(path) / kDiskFileName).string();
}

Result<Config> load_config(const Sources& sources, SourceLocations* places) {
  std::optional<std::string> text;
  if (!sources.path.empty()) {
    auto read = read_file(sources.path);
    if (!read) return std::unexpected(read.error());
    text = *std::move(read);
  }
  auto config = load(text ? &*text : nullptr, sources.path, sources.sets, places);
  if (config) name_disk_files(*config);
  return config;
}

Result<Config> parse_config(std::string_view toml, std::string_view name,
                            std::span<const std::string> sets) {
  const std::string text(toml);
  return load(&text, name, sets, nullptr);
}

std::string fault_text(const SourceLocations& places, std::string_view key, std::string_view what) {
  if (key.empty()) return std::string(what);
  auto place = places.find(key);
  // A key that a table of a list leaves out has no place; its list has one.
  if (place == places.end()) place = places.find(key.substr(0, key.find('.')));
  if (place == places.end() || place->second.empty()) return fault_line({}, key, what);
  return fault_line(place->second, key, what);
}

}  // namespace encore::config
