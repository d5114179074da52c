// encore disk verify: reads and checks every byte, and says what is damaged.
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>

#include "base/units.h"
#include "proxy/disk/cli/command.h"
#include "proxy/disk/cli/saved_text.h"
#include "proxy/disk/cli/verify.h"

namespace encore::disk {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::string& path, const VerifyReport& report) {
  auto faults = Json::array();
  for (const DiskFault& fault : report.faults) {
    Json one = {{"what", fault.what}};
    if (fault.segment) one["segment"] = *fault.segment;
    one["offset"] = fault.offset;
    if (!fault.url.empty()) one["url"] = fault.url;
    one["why"] = fault.why;
    faults.push_back(std::move(one));
  }
  return {{"path", path},
          {"sound", report.fault_count == 0},
          {"segments_used", report.segments_used},
          {"segments_free", report.segments_free},
          {"records", report.records},
          {"parts", report.parts},
          {"record_bytes", report.record_bytes},
          {"purge_log_entries", report.purge_entries},
          {"unfinished", report.unfinished},
          {"overwritten_segments", report.overwritten},
          {"faults", report.fault_count},
          {"damage", std::move(faults)}};
}

void print_fault(const DiskFault& fault, std::ostream& out) {
  out << "  " << fault.what << ", ";
  if (fault.segment) out << "segment " << *fault.segment << ", ";
  out << "offset " << fault.offset << ": " << fault.why;
  if (!fault.url.empty()) out << "; " << shown_text(fault.url);
  out << "\n";
}

void print(const std::string& path, const VerifyReport& report, std::ostream& out) {
  out << path << ": ";
  if (report.fault_count == 0) {
    out << "sound\n";
  } else {
    out << "damaged in " << report.fault_count
        << (report.fault_count == 1 ? " place\n" : " places\n");
  }
  out << "  sound: " << report.records << " records of " << format_bytes(report.record_bytes);
  if (report.parts != 0) out << " (" << report.parts << " of them parts of larger bodies)";
  out << " in " << report.segments_used << " segments, " << report.segments_free
      << " more are free; " << report.purge_entries
      << (report.purge_entries == 1 ? " entry" : " entries") << " in the purge log\n";
  if (report.unfinished != 0) {
    out << "  not finished: " << report.unfinished
        << " at the end of what was written last: being written, or cut off by a crash\n";
  }
  if (report.overwritten != 0) {
    out << "  overwritten while they were read: " << report.overwritten << " segments\n";
  }
  for (const DiskFault& fault : report.faults) print_fault(fault, out);
  if (report.fault_count > report.faults.size()) {
    out << "  and " << report.fault_count - report.faults.size() << " more\n";
  }
}

class VerifyCommand final : public Command {
 public:
  std::string name() const override { return "verify"; }
  std::string summary() const override {
    return "Read and check every used byte; exit 1 if any is damaged";
  }
  std::string examples() const override {
    return "encore disk verify /var/cache/encore/disk\n"
           "encore disk verify --json /dev/sdb /dev/sdc";
  }
  void declare(Arguments& a) override {
    a.files("PATH", paths_, "disks (files or block devices), in use or not");
    a.flag("--json", json_, "print a JSON object per disk, one per line");
  }
  Result<Verdict> run(const Context& context) override {
    return look_at_each(
        paths_, name(), context, [&](const std::string& path, const InspectedDisk& disk) {
          const VerifyReport report = verify_disk(disk, context.monitor);
          if (json_) {
            context.out
                << json_of(path, report).dump(-1, ' ', false, Json::error_handler_t::replace)
                << "\n";
          } else {
            print(path, report, context.out);
          }
          return report.fault_count == 0 ? Verdict::kFine : Verdict::kDamaged;
        });
  }

 private:
  std::vector<std::string> paths_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_verify_command() { return std::make_unique<VerifyCommand>(); }

}  // namespace encore::disk
