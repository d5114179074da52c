#include "proxy/disk/disk_witness.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

namespace encore::disk {
namespace {

constexpr std::string_view kFirstLine = "encore-disks 1";
constexpr std::size_t kDisksMax = 4096;

// The numbers of a line behind its name, in hexadecimal digits. Nothing: there is something else.
std::optional<std::vector<std::uint64_t>> numbers(std::string_view line) {
  std::vector<std::uint64_t> found;
  while (!line.empty()) {
    if (line.front() != ' ') return std::nullopt;
    line.remove_prefix(1);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, 16);
    if (error != std::errc()) return std::nullopt;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    found.push_back(number);
  }
  return found;
}

void append(std::string& text, std::uint64_t number) {
  std::array<char, 17> digits{' '};
  const auto [end, error] =
      std::to_chars(digits.data() + 1, digits.data() + digits.size(), number, 16);
  text.append(digits.data(), end);
}

bool parse_line(std::string_view line, WitnessRecord& witness_record) {
  const auto space = std::min(line.find(' '), line.size());
  const auto found = numbers(line.substr(space));
  if (!found) return false;
  const std::string_view name = line.substr(0, space);
  if (name == "runs" && found->size() >= 2 && witness_record.runs.empty()) {
    const auto runs = RunHistory::restore((*found)[0], static_cast<std::size_t>((*found)[1]),
                                          std::span(*found).subspan(2));
    if (runs) witness_record.runs = *runs;
    return runs.has_value();
  }
  if (name != "disk" || found->size() != 4 || witness_record.disks.size() == kDisksMax)
    return false;
  witness_record.disks.push_back({{(*found)[0], (*found)[1]}, {(*found)[2], (*found)[3]}});
  return true;
}

std::string path_beside(const std::string& disk_path) { return disk_path + ".runs"; }

// Nothing is laid next to a device.
bool has_place_beside(const std::string& disk_path) {
  std::error_code error;
  return std::filesystem::is_regular_file(disk_path, error);
}

}  // namespace

std::optional<LogPosition> WitnessRecord::position_of(const Uuid& uuid) const {
  const auto found = std::ranges::find(disks, uuid, &WitnessedDisk::uuid);
  return found == disks.end() ? std::nullopt : std::optional(found->position);
}

std::string to_text(const WitnessRecord& witness_record) {
  std::string text(kFirstLine);
  text += "\nruns";
  append(text, witness_record.runs.number());
  append(text, witness_record.runs.valid_from());
  for (const RunId run : witness_record.runs.runs()) append(text, run);
  text += '\n';
  for (const WitnessedDisk& disk : witness_record.disks) {
    text += "disk";
    for (const std::uint64_t number :
         {disk.uuid.lo, disk.uuid.hi, disk.position.epoch, disk.position.end}) {
      append(text, number);
    }
    text += '\n';
  }
  return text;
}

Result<WitnessRecord> parse_witness_record(std::string_view text) {
  WitnessRecord witness_record;
  std::size_t lines = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return fail("its last line is not whole");
    const std::string_view line = text.substr(0, end);
    if (lines == 0 ? line != kFirstLine : !parse_line(line, witness_record)) {
      return fail("line " + std::to_string(lines + 1) + " is none of a list of disks");
    }
    ++lines;
    text.remove_prefix(end + 1);
  }
  if (witness_record.runs.empty()) return fail("it names no run");
  return witness_record;
}

Result<WitnessRecord> DiskWitness::read() const {
  if (!files_.read || files_.path.empty()) return WitnessRecord();
  const auto text = files_.read(files_.path);
  if (!text) return std::unexpected(text.error());
  if (!*text) return WitnessRecord();
  auto witness_record = parse_witness_record(**text);
  if (witness_record) return witness_record;
  return fail(files_.path + " is damaged (" + witness_record.error().message +
              "); without it an older copy of a disk is not known as one: remove it if no disk "
              "was copied or away");
}

std::optional<WitnessRecord> DiskWitness::read_beside(const std::string& disk_path,
                                                      const Uuid& uuid) const {
  if (!files_.read || !files_.path.empty() || !has_place_beside(disk_path)) return std::nullopt;
  const auto text = files_.read(path_beside(disk_path));
  if (!text || !*text) return std::nullopt;
  auto witness_record = parse_witness_record(**text);
  if (!witness_record || !witness_record->position_of(uuid)) return std::nullopt;
  return std::move(*witness_record);
}

void DiskWitness::begin(const RunHistory& runs, const std::vector<Disk>& disks) {
  {
    const MutexLock lock(mutex_);
    runs_ = runs;
    disks_.clear();
    for (const Disk& disk : disks) disks_.push_back({disk.path, {disk.uuid, disk.position}});
  }
  save();
}

void DiskWitness::note_purge() {
  if (has_purge_.load()) return;
  {
    const MutexLock lock(mutex_);
    runs_.note_purge();
  }
  save();
  has_purge_ = true;
}

void DiskWitness::note(std::uint16_t disk, LogPosition position, bool is_answered) {
  const MutexLock lock(mutex_);
  if (disk >= disks_.size() || disks_[disk].disk.position == position) return;
  disks_[disk].disk.position = position;
  is_changed_ = true;
  // A purge that was answered comes into the witness with the next tick; others may wait.
  is_urgent_ = is_urgent_ || is_answered;
}

void DiskWitness::tick(MonotonicTime now) {
  {
    const MutexLock lock(mutex_);
    const bool is_due = is_urgent_ || !saved_at_ || now - *saved_at_ >= kLongest;
    if (!is_changed_ || !is_due) return;
    saved_at_ = now;
  }
  save();
}

std::string DiskWitness::error() const {
  const MutexLock lock(mutex_);
  return error_;
}

void DiskWitness::save() {
  if (!files_.write) return;
  // Two that write at the same time could leave the older positions.
  const MutexLock one_at_a_time(saving_);
  RunHistory runs;
  std::vector<Kept> disks;
  {
    const MutexLock lock(mutex_);
    runs = runs_;
    disks = disks_;
    is_changed_ = is_urgent_ = false;
  }
  const auto written = write(runs, disks);
  const MutexLock lock(mutex_);
  error_ = written ? "" : written.error().message;
  // The next tick that is due tries again.
  is_changed_ = is_changed_ || !written;
}

Result<void> DiskWitness::write(const RunHistory& runs, const std::vector<Kept>& disks) const {
  if (runs.empty()) return {};
  WitnessRecord all{.runs = runs, .disks = {}};
  Result<void> result;
  for (const Kept& kept : disks) {
    all.disks.push_back(kept.disk);
    if (!files_.path.empty() || !has_place_beside(kept.path)) continue;
    auto written = files_.write(path_beside(kept.path), to_text({runs, {kept.disk}}));
    if (!written && result) result = std::move(written);
  }
  return files_.path.empty() ? result : files_.write(files_.path, to_text(all));
}

}  // namespace encore::disk
