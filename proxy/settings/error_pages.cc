#include "proxy/settings/error_pages.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace encore::server {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTypes = {{
    {".html", "text/html; charset=utf-8"},
    {".htm", "text/html; charset=utf-8"},
    {".txt", "text/plain; charset=utf-8"},
    {".json", "application/json"},
    {".xml", "application/xml"},
    {".svg", "image/svg+xml"},
}};

// "404" -> 404, "5xx" -> 5; nothing for other names.
std::optional<int> status_of(std::string_view name) {
  const auto digit = [&](std::size_t i) { return name[i] >= '0' && name[i] <= '9'; };
  if (name.size() != 3 || (name[0] != '4' && name[0] != '5')) return std::nullopt;
  const int group = name[0] - '0';
  if (name.substr(1) == "xx") return group;
  if (!digit(1) || !digit(2)) return std::nullopt;
  return group * 100 + (name[1] - '0') * 10 + (name[2] - '0');
}

std::string_view type_of(std::string_view ending) {
  for (const auto& [known, type] : kTypes) {
    if (ending == known) return type;
  }
  return {};
}

Result<std::string> read_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return fail(path.string() + ": is not a file");
  std::ifstream file(path, std::ios::binary);
  std::string text;
  text.resize(kErrorPageBytesMax + 1);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (!file && !file.eof())) return fail(path.string() + ": cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kErrorPageBytesMax) {
    return fail(path.string() + ": is larger than " + std::to_string(kErrorPageBytesMax) +
                " bytes");
  }
  return text;
}

}  // namespace

Result<ErrorPages> ErrorPages::read(const std::string& folder) {
  ErrorPages pages;
  if (folder.empty()) return pages;
  std::error_code error;
  const fs::directory_iterator files(folder, error);
  if (error) return fail(folder + ": " + error.message());
  std::size_t bytes = 0;
  for (const fs::directory_entry& file : files) {
    const fs::path& path = file.path();
    const auto status = status_of(path.stem().string());
    const std::string_view type = type_of(path.extension().string());
    if (!status || type.empty()) {
      const std::string name = path.filename().string();
      if (name[0] >= '0' && name[0] <= '9') pages.misnamed_.insert(name);
      continue;
    }
    auto body = read_file(path);
    if (!body) return std::unexpected(body.error());
    bytes += body->size();
    if (bytes > kErrorPagesBytesMax) {
      return fail(folder + ": its pages have more than " + std::to_string(kErrorPagesBytesMax) +
                  " bytes");
    }
    const auto [other, fresh] = pages.pages_.try_emplace(
        *status, http::OwnPage{.content_type = std::string(type), .body = std::move(*body)});
    if (!fresh) return fail(path.string() + ": is a second page for " + path.stem().string());
  }
  return pages;
}

const http::OwnPage* ErrorPages::find(int status) const {
  for (const int name : {status, status / 100}) {
    const auto found = pages_.find(name);
    if (found != pages_.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace encore::server
