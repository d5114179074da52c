#include "sim/cli/trace_options.h"

#include "base/cli/lists.h"
#include "base/units.h"

namespace encore::sim {

void TraceArguments::declare(Arguments& a) {
  std::string formats = "auto";
#define ENCORE_FORMAT_HELP(id, name, what) formats.append(", ").append(name);
  ENCORE_TRACE_FORMATS(ENCORE_FORMAT_HELP)
#undef ENCORE_FORMAT_HELP
  a.files("TRACE", files_, "trace files, read in order; - is standard input");
  a.text("--format", format_, formats + " (.gz, .xz and .zst are decompressed)");
  a.text("--columns", columns_,
         "csv, tsv, json: role=NAME, or role=NUMBER from 1 for the first column, with roles time, "
         "key, size, ttl, method, status, count: time=1,key=2,size=3");
  a.text("--delimiter", delimiter_,
         "csv: delimiter: a character, tab or space (default: recognised)");
  a.text("--methods", methods_, "counted methods, if the trace has them");
  a.text("--statuses", statuses_, "counted statuses, if the trace has them");
  a.flag("--all-lines", all_lines_, "count every method and status");
  a.text("--key-prefix", key_prefix_,
         "prefix of each key: \"forward:\" hashes the keys of a log as a forward proxy does");
  a.text("--default-size", default_size_, "size of objects without a size in the trace");
  a.text("--hosts", hosts_,
         "count only URLs of these hosts: a list; .example.com stands for all names below it");
  a.text("--split-blocks", block_size_,
         "block traces: a request for each block of this size, as 4KiB (0: as they are)");
  a.real("--bad-max", bad_max_, "largest accepted share of bad lines", {.min = 0, .max = 1});
}

Result<TraceOptions> TraceArguments::options() const {
  TraceOptions options;
  const auto format = parse_trace_format(format_);
  const auto methods = parse_words("--methods", methods_);
  const auto statuses = parse_numbers("--statuses", statuses_, {.min = 100, .max = 999});
  const auto size = parse_size("--default-size", default_size_);
  if (!format || !methods || !statuses) {
    return std::unexpected(!format    ? format.error()
                           : !methods ? methods.error()
                                      : statuses.error());
  }
  if (!size) {
    return std::unexpected(size.error());
  }
  options.format = *format;
  options.methods = *methods;
  options.statuses.clear();
  for (const std::uint64_t status : *statuses) {
    options.statuses.push_back(static_cast<int>(status));
  }
  if (!columns_.empty()) {
    const auto pairs = parse_words("--columns", columns_);
    if (!pairs) {
      return std::unexpected(pairs.error());
    }
    for (const std::string& pair : *pairs) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == pair.size()) {
        return fail("--columns \"" + pair + "\", accepted: role=NAME or role=NUMBER");
      }
      options.columns[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
  }
  if (!delimiter_.empty()) {
    const std::string& d = delimiter_;
    options.delimiter = d == "tab" ? '\t' : d == "space" ? ' ' : d.front();
    if ((d.size() != 1 && d != "tab" && d != "space") || d == "\"" || d == "\n") {
      return fail("--delimiter \"" + d + "\", accepted: one character, tab or space");
    }
  }
  if (!hosts_.empty()) {
    const auto hosts = parse_words("--hosts", hosts_);
    if (!hosts) {
      return std::unexpected(hosts.error());
    }
    options.hosts = *hosts;
  }
  const auto block = parse_size("--split-blocks", block_size_, {.max = kGiB});
  if (!block) {
    return std::unexpected(block.error());
  }
  options.block_bytes = *block;
  options.all_lines = all_lines_;
  options.key_prefix = key_prefix_;
  options.bad_share_max = bad_max_;
  options.default_size_bytes = *size;
  return options;
}

std::string TraceArguments::names() const {
  std::string names;
  for (const std::string& file : files_) {
    names += (names.empty() ? "" : ",") + file;
  }
  return names;
}

Row TraceArguments::parameters() const {
  return {
      {"traces", names()},         {"format", format_},           {"all_lines", all_lines_},
      {"methods", methods_},       {"statuses", statuses_},       {"default_size", default_size_},
      {"key_prefix", key_prefix_}, {"split_blocks", block_size_}, {"hosts", hosts_}};
}

Table TraceArguments::sources(const TraceReader& reader) {
  Table table{.key = "trace", .title = "", .columns = {}, .rows = {}};
  for (const TraceSource& source : reader.sources()) {
    table.rows.push_back({{"file", source.path},
                          {"format", std::string(to_string(source.format))},
                          {"confidence", std::string(to_string(source.confidence))},
                          {"reason", source.reason}});
  }
  return table;
}

Result<void> TraceArguments::check_counted(const TraceReader& reader) {
  const TraceCounts& counts = reader.counts();
  if (counts.counted != 0) {
    return {};
  }
  return fail("the trace has no counted request: of " + std::to_string(counts.lines) +
              " lines or records, " + std::to_string(counts.skipped) +
              " are excluded (--methods, --statuses, --all-lines, --hosts), " +
              std::to_string(counts.bad) + " are bad");
}

std::vector<std::string> TraceArguments::notes(const TraceReader& reader,
                                               const TraceOptions& options) {
  const TraceCounts& counts = reader.counts();
  std::vector<std::string> notes;
  const std::vector<TraceSource>& sources = reader.sources();
  for (const TraceSource& source : sources) {
    std::string told = "format " + std::string(to_string(source.format)) + " (" +
                       std::string(to_string(source.confidence)) +
                       (source.reason.empty() ? "" : ": " + source.reason) + ")";
    notes.push_back(sources.size() == 1 ? told + ": " : source.path + ": " + told + ".");
  }
  if (sources.size() == 1) {
    notes.back().front() = 'F';
  } else {
    notes.emplace_back("Together: ");
  }
  notes.back() += std::to_string(counts.lines) + " lines or records, " +
                  std::to_string(counts.skipped) + " not counted by the rule, " +
                  std::to_string(counts.bad) + " bad.";
  if (!counts.first_row.empty()) {
    notes.push_back("The first request: " + counts.first_row + ".");
  }
  notes.insert(notes.end(), counts.bad_shown.begin(), counts.bad_shown.end());
  if (counts.without_size != 0) {
    notes.push_back(std::to_string(counts.without_size) + " requests had no size and were given " +
                    format_bytes(options.default_size_bytes) + ".");
  }
  return notes;
}

}  // namespace encore::sim
