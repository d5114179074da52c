// encore disk list: the objects of a disk, a line each. They are printed as they are found, unless
// they are to be sorted.
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <ranges>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "proxy/disk/cli/command.h"
#include "proxy/disk/cli/live_records.h"
#include "proxy/disk/cli/saved_text.h"
#include "proxy/disk/cli/shown.h"

namespace encore::disk {
namespace {

struct Object {
  std::string realm;
  std::string url;
  std::string names;
  RecordLine line;
  std::uint32_t segment = 0;
  WallSeconds stored_at = 0;
  WallSeconds fresh_until = 0;
  std::uint64_t body_bytes = 0;
  PartIndex::PartCount parts = {};
};

Object object_of(const VisitedRecord& record) {
  const RecordFields& fields = record.front->fields;
  const SavedText text = saved_text(record.front->text);
  return {.realm = std::string(text.realm),
          .url = std::string(text.url),
          .names = std::string(text.names),
          .line = record.line,
          .segment = record.segment.segment,
          .stored_at = fields.stored_at,
          .fresh_until = fields.fresh_until,
          .body_bytes = fields.body_bytes,
          .parts = record.parts};
}

struct Selection {
  std::string host;  // a pattern of fnmatch(3); empty: any
  std::string prefix;
};

bool is_wanted(const Object& object, const Selection& selection) {
  if (!object.url.starts_with(selection.prefix)) return false;
  if (selection.host.empty()) return true;
  const std::string host(host_of(object.url));
  return host == selection.host ||
         ::fnmatch(selection.host.c_str(), host.c_str(), FNM_CASEFOLD) == 0;
}

enum class Order : std::uint8_t { kWritten, kSize, kAge, kKey };
constexpr std::array<std::string_view, 4> kOrders = {"written", "size", "age", "key"};

// Which of two comes first.
bool precedes(Order order, const Object& a, const Object& b) {
  if (order == Order::kSize && a.body_bytes != b.body_bytes) return a.body_bytes > b.body_bytes;
  if (order == Order::kAge && a.stored_at != b.stored_at) return a.stored_at < b.stored_at;
  if (a.url != b.url) return a.url < b.url;
  return a.line.version > b.line.version;
}

class Printer {
 public:
  Printer(const Context& context, bool as_json) : context_(context), as_json_(as_json) {}

  // False: nobody takes it any more.
  bool print(const Object& object) {
    if (as_json_) {
      print_json(object);
    } else {
      print_head();
      print_line(object);
    }
    return static_cast<bool>(context_.out);
  }

 private:
  void print_head() {
    if (std::exchange(has_head_, true)) return;
    context_.out << "    SIZE    AGE  FRESHNESS     SEGMENT     VERSION  VARIES BY         URL\n";
  }
  void print_line(const Object& object) {
    const bool is_fresh = object.fresh_until > context_.now;
    const std::string span = shown_span(is_fresh ? object.fresh_until - context_.now
                                                 : context_.now - object.fresh_until);
    const std::string state = !object.parts.is_whole() ? "incomplete"
                              : is_fresh               ? "fresh " + span
                                                       : "stale " + span;
    const std::string names = object.names.empty() ? "-" : shown_text(object.names);
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "%8s %6s  %-13s %7u %11llu  ",
                  format_bytes(object.body_bytes).c_str(),
                  shown_span(age_at(context_.now, object.stored_at)).c_str(), state.c_str(),
                  object.segment, static_cast<unsigned long long>(object.line.version));
    constexpr std::size_t kNamesColumn = 16;
    context_.out << text.data() << names
                 << std::string(kNamesColumn - std::min(kNamesColumn, names.size()), ' ') << "  "
                 << shown_text(object.url) << shown_parts(object.parts) << "\n";
  }
  static std::string shown_parts(const PartIndex::PartCount& parts) {
    if (parts.all == 0) return "";
    const std::string all = std::to_string(parts.all) + (parts.all == 1 ? " part" : " parts");
    return " (" + (parts.is_whole() ? all : std::to_string(parts.there) + " of " + all) + ")";
  }
  void print_json(const Object& object) {
    const auto until = static_cast<std::int64_t>(object.fresh_until);
    auto names = nlohmann::ordered_json::array();
    for (const auto name : std::views::split(object.names, ',')) {
      if (!name.empty()) names.push_back(std::string(name.begin(), name.end()));
    }
    const nlohmann::ordered_json line = {
        {"url", object.url},
        {"realm", object.realm},
        {"bytes", object.body_bytes},
        {"parts", object.parts.all},
        {"parts_there", object.parts.there},
        {"age", age_at(context_.now, object.stored_at)},
        {"fresh_for", until - static_cast<std::int64_t>(context_.now)},
        {"stored_at", object.stored_at},
        {"fresh_until", object.fresh_until},
        {"varies_by", std::move(names)},
        {"version", object.line.version},
        {"segment", object.segment},
        {"offset", std::uint64_t{object.line.unit} * cache::kDiskUnit},
        {"disk_bytes", std::uint64_t{object.line.room_units} * cache::kDiskUnit}};
    // Bytes that are no UTF-8 are replaced.
    context_.out << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                 << "\n";
  }

  const Context& context_;
  bool as_json_;
  bool has_head_ = false;
};

// Takes the objects that are wanted, in the order in which they are found.
class Lister final : public RecordVisitor {
 public:
  struct Options {
    Selection selection;
    Order order = Order::kWritten;
    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  };
  Lister(Options options, Printer& printer) : options_(std::move(options)), printer_(printer) {}

  bool on_record(const VisitedRecord& record) override {
    if (record.state == RecordState::kUnreadable) ++unreadable_;
    if (record.front == nullptr) return true;
    Object object = object_of(record);
    if (is_wanted(object, options_.selection)) objects_.push_back(std::move(object));
    if (options_.order != Order::kWritten && objects_.size() / 2 > options_.limit) keep_first();
    return true;
  }
  bool on_segment(const VisitedSegment& /*segment*/) override {
    if (options_.order != Order::kWritten) return true;
    for (const Object& object : std::views::reverse(objects_)) {
      if (!print(object)) return false;
    }
    objects_.clear();
    return printed_ < options_.limit;
  }
  // Prints the objects that were collected for sorting.
  void finish() {
    if (options_.order == Order::kWritten) return;
    std::ranges::sort(objects_, [this](const Object& a, const Object& b) {
      return precedes(options_.order, a, b);
    });
    for (const Object& object : objects_) {
      if (!print(object)) return;
    }
  }
  // Since the last call.
  std::uint64_t take_unreadable() { return std::exchange(unreadable_, 0); }

 private:
  bool print(const Object& object) {
    if (printed_ == options_.limit) return false;
    ++printed_;
    return printer_.print(object);
  }
  void keep_first() {
    const auto end = objects_.begin() + static_cast<std::ptrdiff_t>(options_.limit);
    std::ranges::nth_element(objects_, end, [this](const Object& a, const Object& b) {
      return precedes(options_.order, a, b);
    });
    objects_.erase(end, objects_.end());
  }

  Options options_;
  Printer& printer_;
  std::vector<Object> objects_;  // objects of one segment, or all for sorting
  std::uint64_t printed_ = 0;
  std::uint64_t unreadable_ = 0;
};

void say_unreadable(const Context& context, const std::string& path, std::uint64_t records) {
  context.out.flush();
  context.err << "encore disk list: " << records << (records == 1 ? " record" : " records")
              << " cannot be read; encore disk verify " << path << " says which\n";
}

class ListCommand final : public Command {
 public:
  std::string name() const override { return "list"; }
  std::string summary() const override { return "List the objects of disks, one per line"; }
  std::string examples() const override {
    return "encore disk list /var/cache/encore/disk\n"
           "encore disk list --host '*.example.org' --sort size --limit 20 /var/cache/encore/disk\n"
           "encore disk list --key https://example.org/img/ --json /var/cache/encore/disk";
  }
  void declare(Arguments& a) override {
    a.files("PATH", paths_,
            "disks (files or block devices), in use or not. Name all disks of a cache: large "
            "objects lie on all of them");
    a.text("--host", selection_.host, "only these hosts; * matches any characters, ? one");
    a.text("--key", selection_.prefix, "only URLs with this prefix");
    a.text("--sort", sort_,
           "order: written (last written first), size (largest first), age (oldest first), key (by "
           "URL)");
    a.number("--limit", limit_, "at most N objects; 0: all");
    a.flag("--json", json_, "print a JSON object per line");
  }
  Result<Verdict> run(const Context& context) override {
    const auto order = std::ranges::find(kOrders, sort_);
    if (order == kOrders.end()) {
      return fail("--sort \"" + sort_ + "\", accepted: written, size, age, key");
    }
    std::vector<InspectedDisk> disks;
    for (const std::string& path : paths_) {
      auto disk = InspectedDisk::open(path);
      if (!disk) return std::unexpected(disk.error());
      disks.push_back(std::move(*disk));
    }
    Lister::Options options{.selection = selection_,
                            .order = static_cast<Order>(order - kOrders.begin())};
    if (limit_ != 0) options.limit = limit_;
    Printer printer(context, json_);
    Lister lister(std::move(options), printer);
    PartIndex parts(pointers_to(disks));
    for (std::size_t i = 0; i < disks.size(); ++i) {
      LiveRecords records(disks[i], parts);
      if (auto visited = records.visit(lister); !visited) return std::unexpected(visited.error());
      const std::uint64_t unreadable = lister.take_unreadable();
      if (unreadable != 0 && records.overwritten() == 0)
        say_unreadable(context, paths_[i], unreadable);
    }
    lister.finish();
    return Verdict::kFine;
  }

 private:
  std::vector<std::string> paths_;
  Selection selection_;
  std::string sort_ = "written";
  std::uint64_t limit_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_list_command() { return std::make_unique<ListCommand>(); }

}  // namespace encore::disk
