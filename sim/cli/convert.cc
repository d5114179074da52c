// encore-sim convert: a trace, or a part of it, in another format.
#include <optional>

#include "base/cli/numbers.h"
#include "sim/cli/commands.h"
#include "sim/cli/loaded_trace.h"
#include "sim/cli/trace_options.h"
#include "sim/trace/filtered_reader.h"
#include "sim/trace/trace_writer.h"

namespace encore::sim {
namespace {

class ConvertCommand final : public Command {
 public:
  std::string name() const override { return "convert"; }
  std::string summary() const override {
    return "Write a trace, or a part of it, in another format";
  }
  std::string example() const override {
    return "encore-sim convert access.log.gz -o part.bin --as oracle-general --from 10s --share "
           "0.5";
  }
  void declare(Arguments& a) override {
    trace_.declare(a);
    a.output("-o,--output", output_, "output file: .zst compresses, - is standard output");
    a.text("--as", as_,
           "format: encore, csv, oracle-general, lcs (default: csv for .csv, else encore)");
    a.text("--from", from_, "leave out requests before this time since the first one, as 1h");
    a.text("--until", until_, "leave out requests from this time on");
    a.real("--share", share_, "write this share of the objects, with all of their requests",
           {.min = 0, .max = 1, .without_min = true});
    a.number("--share-seed", share_seed_, "seed of the share: another seed, other objects");
    a.text("--size-min", size_min_, "leave out smaller responses");
    a.text("--size-max", size_max_, "leave out larger responses");
  }

  Result<Outcome> run(const Context& context) override {
    if (output_.empty()) {
      return fail("no output: add -o FILE");
    }
    if (output_ == "-" && context.json_to_out) {
      return fail("trace and report both go to standard output: use --json=FILE");
    }
    const auto format = as_.empty() ? written_format_of(output_) : parse_written_format(as_);
    const auto filter = read_filter();
    const auto read_as = trace_.options();
    for (const Error* error :
         {format ? nullptr : &format.error(), filter ? nullptr : &filter.error(),
          read_as ? nullptr : &read_as.error()}) {
      if (error != nullptr) {
        return std::unexpected(*error);
      }
    }
    TraceOptions options = *read_as;
    options.monitor = &context.monitor;
    auto opened = context.open(trace_.files(), options);
    if (!opened) {
      return std::unexpected(opened.error());
    }
    FilteredReader reader(std::move(*opened), *filter);
    const bool with_future =
        *format == WrittenFormat::kOracleGeneral || *format == WrittenFormat::kLcs;
    const auto trace = load_trace(reader,
                                  {.know_future = with_future,
                                   .sample = {.rate = share_, .seed = share_seed_},
                                   .object_size = ObjectSize::kLatest},
                                  context.monitor);
    if (!trace) {
      return std::unexpected(trace.error());
    }
    if (context.monitor.stopped()) {
      return fail("interrupted: nothing was written");
    }
    if (auto fine = TraceArguments::check_counted(reader); !fine) {
      return std::unexpected(fine.error());
    }
    if (trace->requests.size() == 0) {
      return fail("no request is left: of " + std::to_string(reader.counts().counted) + ", " +
                  std::to_string(reader.left_out()) +
                  " are outside of --from, --until, --size-min and --size-max, and the others "
                  "are not in the --share");
    }
    auto written = write(*trace, *format, context.monitor);
    if (!written) {
      return std::unexpected(written.error());
    }
    return report(*trace, *written, *format, reader, options);
  }

 private:
  Result<RequestFilter> read_filter() const {
    RequestFilter filter;
    if (!from_.empty()) {
      const auto from = parse_time_span("--from", from_);
      if (!from) {
        return std::unexpected(from.error());
      }
      filter.from = *from;
    }
    if (!until_.empty()) {
      const auto until = parse_time_span("--until", until_);
      if (!until) {
        return std::unexpected(until.error());
      }
      filter.until = *until;
    }
    for (const auto& [option, text, bytes] :
         {std::tuple{"--size-min", &size_min_, &filter.size_min},
          std::tuple{"--size-max", &size_max_, &filter.size_max}}) {
      if (text->empty()) {
        continue;
      }
      const auto size = parse_size(option, *text);
      if (!size) {
        return std::unexpected(size.error());
      }
      *bytes = *size;
    }
    if (filter.until && *filter.until <= filter.from) {
      return fail("--until " + until_ + " is not after --from " + (from_.empty() ? "0s" : from_));
    }
    if (filter.size_max < filter.size_min) {
      return fail("--size-max " + size_max_ + " is below --size-min " + size_min_);
    }
    return filter;
  }

  // Figures that stand before the requests.
  static Result<WrittenTrace> figures_of(const LoadedTrace& trace) {
    WrittenTrace figures{
        .requests = trace.requests.size(),
        .objects = trace.objects.objects(),
        .object_bytes = trace.objects.footprint_bytes(),
        .needs_version_3 = trace.with_ttl != 0 || trace.objects.largest_bytes() > UINT32_MAX};
    SpoolReader reader(trace.requests, trace.objects);
    bool is_first = true;
    while (true) {
      const auto part = reader.read();
      if (!part) {
        return std::unexpected(part.error());
      }
      if (part->empty()) {
        return figures;
      }
      if (std::exchange(is_first, false)) {
        figures.first_ns = part->front().time_ns;
      }
      figures.last_ns = part->back().time_ns;
      for (const ReplayRequest& request : *part) {
        figures.requested_bytes += request.size_bytes;
      }
    }
  }

  Result<WrittenTrace> write(const LoadedTrace& trace, WrittenFormat format,
                             Monitor& monitor) const {
    const auto figures = figures_of(trace);
    if (!figures) {
      return figures;
    }
    auto writer = TraceWriter::open(output_, {.format = format, .trace = *figures});
    if (!writer) {
      return std::unexpected(writer.error());
    }
    monitor.begin("writing", trace.requests.size());
    SpoolReader reader(trace.requests, trace.objects);
    while (true) {
      const auto part = reader.read();
      if (!part) {
        return std::unexpected(part.error());
      }
      for (const ReplayRequest& request : *part) {
        auto written = (*writer)->write({.id = request.object,
                                         .time_ns = request.time_ns,
                                         .size_bytes = request.size_bytes,
                                         .ttl_seconds = request.ttl_seconds,
                                         .next = request.next});
        if (!written) {
          return std::unexpected(written.error());
        }
      }
      if (part->empty() || !monitor.advance(part->size())) {
        break;
      }
    }
    if (auto finished = (*writer)->finish(); !finished) {
      return std::unexpected(finished.error());
    }
    if (monitor.heard) {
      return fail("interrupted: " + output_ + " is cut off");
    }
    return *figures;
  }

  Outcome report(const LoadedTrace& trace, const WrittenTrace& written, WrittenFormat format,
                 const TraceReader& reader, const TraceOptions& options) const {
    Outcome outcome{.report = {}, .out_is_taken = output_ == "-"};
    outcome.report.parameters = trace_.parameters();
    outcome.report.parameters.emplace_back("output", output_);
    outcome.report.parameters.emplace_back("as", std::string(to_string(format)));
    outcome.report.parameters.emplace_back("share", share_);
    Table table{.key = "rows",
                .title = "",
                .columns = {{"requests", "requests", Style::kCount},
                            {"objects", "objects", Style::kCount},
                            {"bytes_requested", "bytes requested", Style::kBytes},
                            {"of_requests", "of requests", Style::kCount}},
                .rows = {}};
    table.rows.push_back({{"requests", written.requests},
                          {"objects", written.objects},
                          {"bytes_requested", written.requested_bytes},
                          {"of_requests", reader.counts().counted},
                          {"with_ttl", trace.with_ttl}});
    outcome.report.tables = {std::move(table), TraceArguments::sources(reader)};
    outcome.report.notes = TraceArguments::notes(reader, options);
    outcome.report.notes.emplace_back(
        "Objects are numbers now, from 0 in the order of their first requests.");
    return outcome;
  }

  TraceArguments trace_;
  std::string output_;
  std::string as_;
  std::string from_;
  std::string until_;
  double share_ = 1;
  std::uint64_t share_seed_ = 1;
  std::string size_min_;
  std::string size_max_;
};

}  // namespace

std::unique_ptr<Command> make_convert_command() { return std::make_unique<ConvertCommand>(); }

}  // namespace encore::sim
