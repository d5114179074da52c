// encore disk stat: what lies on a disk, in numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proxy/disk/cli/command.h"
#include "proxy/disk/cli/saved_text.h"
#include "proxy/disk/cli/shown.h"
#include "proxy/disk/cli/stat.h"

namespace encore::disk {
namespace {

using Json = nlohmann::ordered_json;
using Host = std::pair<std::string, CountAndBytes>;

// The most bytes first.
std::vector<Host> top_hosts(const DiskStat& stat, std::uint64_t top) {
  std::vector<Host> hosts(stat.hosts.begin(), stat.hosts.end());
  std::ranges::stable_sort(hosts, [](const Host& a, const Host& b) {
    return a.second.bytes != b.second.bytes ? a.second.bytes > b.second.bytes
                                            : a.second.count > b.second.count;
  });
  hosts.resize(std::min<std::uint64_t>(hosts.size(), top));
  return hosts;
}

Json json_of(const CountAndBytes& amount) {
  return {{"records", amount.count}, {"bytes", amount.bytes}};
}

template <std::size_t n>
Json json_of(const std::array<Border, n>& borders,
             const std::array<CountAndBytes, n + 1>& amounts) {
  auto classes = Json::array();
  for (std::size_t i = 0; i <= n; ++i) {
    classes.push_back({{"below", i < n ? Json(borders[i].below) : Json()},
                       {"objects", amounts[i].count},
                       {"bytes", amounts[i].bytes}});
  }
  return classes;
}

Json days(const std::optional<double>& days) {
  return days ? Json(std::round(*days * 100) / 100) : Json();
}

Json json_of(const std::string& path, const DiskStat& stat, WallSeconds now, std::uint64_t top) {
  const Superblock& disk = stat.superblock;
  auto hosts = Json::array();
  for (const auto& [host, amount] : top_hosts(stat, top)) {
    hosts.push_back({{"host", host}, {"objects", amount.count}, {"bytes", amount.bytes}});
  }
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
  Json json = {{"path", path},
               {"bytes", disk.disk_bytes()},
               {"made_at", disk.made_at},
               {"segment_bytes", disk.segment_bytes},
               {"segments", disk.segments},
               {"segments_used", stat.segments_used},
               {"segments_free", stat.segments_free()},
               {"segments_unsealed", stat.segments_unsealed},
               {"segments_overwritten", stat.overwritten},
               {"live", json_of(stat.live())},
               {"objects", json_of(stat.objects)},
               {"parts", json_of(stat.parts)},
               {"dead", json_of(stat.dead())},
               {"replaced", json_of(stat.replaced)},
               {"purged", json_of(stat.purged)},
               {"incomplete", json_of(stat.incomplete)},
               {"unreadable", json_of(stat.unreadable)},
               {"overhead_bytes", stat.overhead_bytes},
               {"oldest_age", stat.oldest ? Json(age_at(now, *stat.oldest)) : Json()},
               {"written_a_day", or_null(stat.written_a_day)},
               {"days_until_full", days(stat.days_for(stat.segments_free()))},
               {"days_around", days(stat.days_for(disk.segments))},
               {"purge_log_entries", stat.purge_entries},
               {"purge_log_bytes", stat.purge_bytes},
               {"hosts_all", stat.hosts.size()},
               {"hosts", std::move(hosts)}};
  json["ages"] = json_of(kAges, stat.ages);
  json["sizes"] = json_of(kSizes, stat.sizes);
  return json;
}

class Printer {
 public:
  explicit Printer(std::ostream& out) : out_(out) {}

  void line(std::string_view name, const std::string& text) {
    constexpr std::size_t kColumn = 12;
    out_ << "  " << name << std::string(kColumn - std::min(kColumn, name.size()), ' ') << text
         << "\n";
  }
  void table(std::string_view name) { row(name, "OBJECTS", "BYTES"); }
  void row(std::string_view name, const CountAndBytes& amount) {
    row("  " + std::string(name), std::to_string(amount.count), format_bytes(amount.bytes));
  }
  template <std::size_t n>
  void classes(const std::array<Border, n>& borders,
               const std::array<CountAndBytes, n + 1>& amounts) {
    for (std::size_t i = 0; i < n; ++i) row("below " + std::string(borders[i].name), amounts[i]);
    row("more", amounts[n]);
  }

 private:
  void row(std::string_view name, const std::string& count, const std::string& bytes) {
    constexpr std::size_t kColumn = 36;
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%12s %10s\n", count.c_str(), bytes.c_str());
    out_ << "  " << name << std::string(kColumn - std::min(kColumn, name.size()), ' ')
         << text.data();
  }

  std::ostream& out_;
};

std::string shown_days(double days) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), days < 10 ? "%.1f" : "%.0f", days);
  return std::string(text.data()) + " days";
}

std::string shown(const CountAndBytes& amount, std::string_view of) {
  return std::to_string(amount.count) + " " + std::string(of) + " (" + format_bytes(amount.bytes) +
         ")";
}

std::string shown_rate(const DiskStat& stat) {
  if (!stat.written_a_day) return "unknown: the disk has less than an hour of writes";
  std::string text = format_bytes(*stat.written_a_day) + " a day";
  const auto around = stat.days_for(stat.superblock.segments);
  if (!around) return text;
  text += "; the ring is around every " + shown_days(*around);
  if (stat.segments_free() == 0) return text;
  return text + ", free segments last for " + shown_days(*stat.days_for(stat.segments_free()));
}

void print(const std::string& path, const DiskStat& stat, const Context& context,
           std::uint64_t top) {
  const Superblock& disk = stat.superblock;
  context.out << path << "\n";
  Printer printer(context.out);
  printer.line("size", format_bytes(disk.disk_bytes()) + ": " + std::to_string(disk.segments) +
                           " segments of " + format_bytes(disk.segment_bytes) + ", " +
                           std::to_string(stat.segments_used) + " used, " +
                           std::to_string(stat.segments_free()) + " free");
  printer.line("made", shown_time(disk.made_at) + ", " +
                           shown_span(age_at(context.now, disk.made_at)) + " ago");
  printer.line("live",
               shown(stat.objects, "objects") +
                   (stat.parts.count == 0 ? std::string()
                                          : ", " + shown(stat.parts, "parts of larger bodies")));
  printer.line("dead", shown(stat.replaced, "replaced") + ", " + shown(stat.purged, "purged") +
                           ", " + shown(stat.incomplete, "incomplete"));
  if (stat.unreadable.count != 0) {
    printer.line("unreadable", shown(stat.unreadable, "records") + "; see encore disk verify");
  }
  if (stat.overwritten != 0) {
    printer.line("overwritten",
                 std::to_string(stat.overwritten) + " segments while they were read");
  }
  if (stat.oldest) printer.line("oldest", shown_span(age_at(context.now, *stat.oldest)));
  printer.line("written", shown_rate(stat));
  printer.line("purge log", std::to_string(stat.purge_entries) +
                                (stat.purge_entries == 1 ? " entry (" : " entries (") +
                                format_bytes(stat.purge_bytes) + " of " +
                                format_bytes(disk.purge_bytes) + ")");
  if (stat.objects.count == 0) return;
  printer.table("hosts: " + std::to_string(stat.hosts.size()));
  for (const auto& [host, amount] : top_hosts(stat, top)) {
    printer.row(host.empty() ? "-" : shown_text(host), amount);
  }
  printer.table("ages");
  printer.classes(kAges, stat.ages);
  printer.table("sizes");
  printer.classes(kSizes, stat.sizes);
}

class StatCommand final : public Command {
 public:
  std::string name() const override { return "stat"; }
  std::string summary() const override {
    return "Print numbers of a disk: hosts, ages, sizes, bytes written per day";
  }
  std::string examples() const override {
    return "encore disk stat /var/cache/encore/disk\n"
           "encore disk stat --top 50 --json /dev/sdb /dev/sdc";
  }
  void declare(Arguments& a) override {
    a.files("PATH", paths_, "disks (files or block devices), in use or not");
    a.number("--top", top_, "number of hosts, those with the most bytes");
    a.flag("--json", json_, "print a JSON object per disk, one per line");
  }
  Result<Verdict> run(const Context& context) override {
    // The next loop reports disks that cannot be opened.
    std::vector<InspectedDisk> all;
    for (const std::string& path : paths_) {
      if (auto disk = InspectedDisk::open(path)) all.push_back(std::move(*disk));
    }
    PartIndex parts(pointers_to(all));
    return look_at_each(paths_, name(), context,
                        [&](const std::string& path, const InspectedDisk& disk) -> Result<Verdict> {
                          const auto stat = stat_disk(disk, parts, context.now, context.monitor);
                          if (!stat) return std::unexpected(stat.error());
                          if (json_) {
                            context.out << json_of(path, *stat, context.now, top_)
                                               .dump(-1, ' ', false, Json::error_handler_t::replace)
                                        << "\n";
                          } else {
                            print(path, *stat, context, top_);
                          }
                          return Verdict::kFine;
                        });
  }

 private:
  std::vector<std::string> paths_;
  std::uint64_t top_ = 10;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_stat_command() { return std::make_unique<StatCommand>(); }

}  // namespace encore::disk
