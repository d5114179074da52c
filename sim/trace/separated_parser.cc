// csv and tsv: columns by the names in a header line, by number, or by their count.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/line_parser.h"

namespace encore::sim {
namespace {

enum Role : std::uint8_t { kTime, kKey, kSize, kTtl, kMethod, kStatus, kCount, kRoles };
constexpr std::array<std::string_view, kRoles> kRoleNames = {"time",   "key",    "size", "ttl",
                                                             "method", "status", "count"};

struct KnownName {
  std::string_view name;
  Role role;
};
// Header names that are understood without being told; an earlier one of a role wins. "op" and
// "op_count" are CacheLib's, "cachekey" and "objectsize" Meta's CDN's, "relative_unix" and what is
// hashed Wikimedia's.
constexpr std::array kKnownNames = {
    KnownName{"time", kTime},
    KnownName{"timestamp", kTime},
    KnownName{"ts", kTime},
    KnownName{"clock_time", kTime},
    KnownName{"op_time", kTime},
    KnownName{"key", kKey},
    KnownName{"url", kKey},
    KnownName{"id", kKey},
    KnownName{"obj_id", kKey},
    KnownName{"object", kKey},
    KnownName{"object_id", kKey},
    KnownName{"block_id", kKey},
    KnownName{"io_size", kSize},
    KnownName{"bytes", kSize},
    KnownName{"size", kSize},
    KnownName{"obj_size", kSize},
    KnownName{"object_size", kSize},
    KnownName{"ttl", kTtl},
    KnownName{"method", kMethod},
    KnownName{"op", kMethod},
    KnownName{"status", kStatus},
    KnownName{"response", kStatus},
    KnownName{"op_count", kCount},
    KnownName{"count", kCount},
    KnownName{"relative_unix", kTime},
    KnownName{"cachekey", kKey},
    KnownName{"cache_key", kKey},
    KnownName{"hashed_path_query", kKey},
    KnownName{"hashed_host_path_query", kKey},
    KnownName{"hashed_host_and_path", kKey},
    KnownName{"objectsize", kSize},
    KnownName{"response_size", kSize},
    KnownName{"operation", kMethod},
};

// A header is no longer.
constexpr std::size_t kAhead = 64 * 1024;

constexpr int kNoColumn = -1;
using Columns = std::array<int, kRoles>;

class SeparatedParser final : public LineParser {
 public:
  SeparatedParser(char separator, const Columns& columns)
      : separator_(separator), columns_(columns) {
    last_ = *std::ranges::max_element(columns_);
    places_.assign(static_cast<std::size_t>(last_) + 1, kRoles);
    for (std::size_t role = 0; role < kRoles; ++role) {
      if (columns_[role] != kNoColumn) {
        places_[static_cast<std::size_t>(columns_[role])] = static_cast<Role>(role);
      }
    }
  }

  const char* parse(std::string_view line, LineFields& fields) override {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      // Exhausted is no view at all, an empty last column is a view of nothing.
      if (line.data() == nullptr && i != 0) {
        return "too few columns";
      }
      const std::string_view text = take_column(line);
      const char* wrong = places_[i] == kRoles ? nullptr : take(places_[i], text, fields);
      if (wrong != nullptr) {
        return wrong;
      }
    }
    note_operation(fields, fields.size_bytes != 0);
    return fields.key.empty() ? "an empty key" : nullptr;
  }

 private:
  // A column may be quoted; two quotes inside are one.
  std::string_view take_column(std::string_view& rest) {
    if (rest.empty() || rest.front() != '"') {
      return take_field(rest, separator_);
    }
    unquoted_.clear();
    std::size_t i = 1;
    for (; i < rest.size(); ++i) {
      if (rest[i] == '"') {
        if (i + 1 >= rest.size() || rest[i + 1] != '"') {
          break;
        }
        ++i;
      }
      unquoted_ += rest[i];
    }
    rest = i + 2 <= rest.size() ? rest.substr(i + 2) : std::string_view{};
    // Only the key is read again after the line: it gets a place of its own.
    return unquoted_;
  }

  const char* take(Role role, std::string_view text, LineFields& fields) {
    switch (role) {
      case kTime:
        return read_time(text, fields.time_ns) ? nullptr : "no time in its column";
      case kKey:
        if (text.data() == unquoted_.data()) {
          key_ = text;
          text = key_;
        }
        fields.key = text;
        return nullptr;
      case kSize:
        fields.has_size = !text.empty() && text != "-";
        return !fields.has_size || read_number(text, fields.size_bytes)
                   ? nullptr
                   : "no number in the size's column";
      case kTtl:
        return text.empty() || text == "-" || read_number(text, fields.ttl_seconds)
                   ? nullptr
                   : "no number in the ttl's column";
      case kMethod:
        method_ = method_of(text);
        fields.method = method_;
        return nullptr;
      case kStatus:
        return read_number(text, fields.status) ? nullptr : "no number in the status' column";
      case kCount:
        return read_number(text, fields.count) && fields.count <= kCountMax
                   ? nullptr
                   : "no number up to a million in the count's column";
      case kRoles:
        break;
    }
    return nullptr;
  }

  static constexpr std::uint64_t kCountMax = 1'000'000;
  char separator_;
  Columns columns_;
  int last_ = 0;
  std::vector<Role> places_;
  std::string unquoted_;
  std::string key_;
  std::string method_;
};

// In lower case and without their quotes, within which a separator is none.
std::vector<std::string> split(std::string_view line, char separator) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == separator && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return cells;
}

bool looks_like_header(const std::vector<std::string>& cells) {
  return std::ranges::none_of(cells,
                              [](const std::string& cell) {
                                double number = 0;
                                return read_number(cell, number);
                              }) &&
         std::ranges::any_of(cells, [](const std::string& cell) {
           return std::ranges::any_of(kKnownNames,
                                      [&](const KnownName& known) { return known.name == cell; });
         });
}

// Without header and without an option: key · key,size · time,key,size · time,key,size,ttl. More
// columns are ambiguous: detection refuses them.
Columns columns_by_count(std::size_t count) {
  Columns columns;
  columns.fill(kNoColumn);
  columns[kKey] = count >= 3 ? 1 : 0;
  columns[kTime] = count >= 3 ? 0 : kNoColumn;
  columns[kSize] = count >= 3 ? 2 : (count == 2 ? 1 : kNoColumn);
  columns[kTtl] = count >= 4 ? 3 : kNoColumn;
  return columns;
}

Columns columns_by_header(const std::vector<std::string>& cells) {
  Columns columns;
  columns.fill(kNoColumn);
  for (const KnownName& known : kKnownNames) {
    const auto at = std::ranges::find(cells, known.name);
    if (at != cells.end() && columns[known.role] == kNoColumn) {
      columns[known.role] = static_cast<int>(at - cells.begin());
    }
  }
  // In block traces a row is one operation, and "op_count" counts its chunks.
  const int count = columns[kCount];
  if (columns[kMethod] == kNoColumn && count != kNoColumn &&
      cells[static_cast<std::size_t>(count)] == "op_count") {
    columns[kCount] = kNoColumn;
  }
  return columns;
}

Result<Columns> columns_by_options(const TraceOptions& options,
                                   const std::vector<std::string>& cells, bool header) {
  Columns columns;
  columns.fill(kNoColumn);
  for (const auto& [role_name, wanted] : options.columns) {
    const auto role = std::ranges::find(kRoleNames, role_name);
    if (role == kRoleNames.end()) {
      return fail("unknown column role \"" + role_name +
                  "\", accepted: time, key, size, ttl, method, status, count");
    }
    int number = 0;
    std::string lower = wanted;
    std::ranges::transform(lower, lower.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    const auto named = std::ranges::find(cells, lower);
    const bool is_number = read_number(wanted, number);
    if (!is_number && header && named != cells.end()) {
      number = static_cast<int>(named - cells.begin()) + 1;
    }
    constexpr int kColumnsMax = 4096;
    if (is_number && (number < 1 || number > kColumnsMax)) {
      return fail("--columns " + role_name + "=" + wanted +
                  ", accepted: a number from 1 for the first column, or a name of the header");
    }
    if (number < 1) {
      return fail("no column \"" + wanted + "\" for " + role_name + " in the trace's header");
    }
    columns[static_cast<std::size_t>(role - kRoleNames.begin())] = number - 1;
  }
  return columns;
}

}  // namespace

std::size_t count_columns(std::string_view line, char separator) {
  std::size_t columns = 1;
  bool quoted = false;
  for (const char c : line) {
    quoted = quoted != (c == '"');
    columns += c == separator && !quoted ? 1U : 0U;
  }
  return columns;
}

Result<SeparatedLayout> separated_layout(const SeparatedFirst& first, const TraceOptions& options) {
  const std::vector<std::string> cells = split(first.line, first.separator);
  // Unknown names above columns of numbers are a header too.
  bool header = looks_like_header(cells) ||
                (!options.columns.empty() && !has_number(first.line, first.separator) &&
                 has_number(first.second, first.separator));
  Result<Columns> columns = header ? columns_by_header(cells) : columns_by_count(first.columns);
  if (!options.columns.empty()) {
    // A header of unknown names is one if a wanted column is named in it.
    header = header || std::ranges::any_of(options.columns, [&](const auto& entry) {
               return std::ranges::find(cells, entry.second) != cells.end() &&
                      entry.second.find_first_not_of("0123456789") != std::string::npos;
             });
    columns = columns_by_options(options, cells, header);
  }
  if (!columns) {
    return std::unexpected(columns.error());
  }
  if ((*columns)[kKey] == kNoColumn) {
    return fail("no column for the key: name it with --columns key=NAME or key=NUMBER");
  }
  SeparatedLayout layout{.parser = std::make_unique<SeparatedParser>(first.separator, *columns),
                         .header = header,
                         .roles = {}};
  for (std::size_t role = 0; role < kRoles; ++role) {
    if ((*columns)[role] != kNoColumn) {
      layout.roles += (layout.roles.empty() ? "" : ", ") + std::string(kRoleNames[role]);
    }
  }
  return layout;
}

Result<std::unique_ptr<LineParser>> make_separated_parser(Input& input, char separator,
                                                          const TraceOptions& options) {
  auto ahead = input.peek(kAhead);
  // Remarks and empty lines may stand before the header.
  while (ahead &&
         (ahead->starts_with('#') || ahead->starts_with('\n') || ahead->starts_with("\r\n"))) {
    std::string_view remark;
    if (auto taken = input.next_line(remark); !taken) {
      return std::unexpected(taken.error());
    }
    ahead = input.peek(kAhead);
  }
  if (!ahead) {
    return std::unexpected(ahead.error());
  }
  std::string_view rest = *ahead;
  const auto next = [&] {
    std::string_view line = take_field(rest, '\n');
    line.remove_suffix(line.ends_with('\r') ? 1 : 0);
    return line;
  };
  const std::string_view first = next();
  const std::string_view second = next();
  auto layout = separated_layout({.line = first,
                                  .separator = separator,
                                  .columns = count_columns(first, separator),
                                  .second = second},
                                 options);
  if (!layout) {
    return std::unexpected(layout.error());
  }
  if (layout->header) {
    std::string_view line;
    if (auto taken = input.next_line(line); !taken) {
      return std::unexpected(taken.error());
    }
  }
  return std::move(layout->parser);
}

}  // namespace encore::sim
