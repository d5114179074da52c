#include "proxy/process/disk_start.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "base/new_file.h"
#include "proxy/disk/disk_set.h"
#include "proxy/process/directories.h"
#include "proxy/process/disk_purge.h"
#include "proxy/process/private_file.h"

namespace encore::server {
namespace {

Result<void> fail_making(const config::Disk& disk, int os_error) {
  return fail("disk \"" + disk.path +
              "\" cannot be created: " + why_no_new_file(disk.path, os_error));
}

std::string directory_of(const config::Disk& disk) {
  const std::string directory = std::filesystem::path(disk.path).parent_path();
  return directory.empty() ? "." : directory;
}

// Makes the directory of a disk's file, if it is missing.
Result<void> make_directory_of(const config::Disk& disk) {
  std::error_code ignored;
  const std::string directory = directory_of(disk);
  if (std::filesystem::is_directory(directory, ignored)) return {};
  auto made = make_directory(directory);
  return made ? made : fail("disk \"" + disk.path + "\": " + made.error().message);
}

Result<void> check_new_file_of(const config::Disk& disk) {
  std::error_code ignored;
  const std::string directory = directory_of(disk);
  if (!std::filesystem::is_directory(directory, ignored)) {
    auto makeable = check_makeable(directory);
    return makeable ? makeable : fail("disk \"" + disk.path + "\": " + makeable.error().message);
  }
  const int os_error = check_new_file(disk.path);
  return os_error == 0 || os_error == EEXIST ? Result<void>() : fail_making(disk, os_error);
}

Result<void> check_new_disk(const config::Disk& disk) {
  if (auto makeable = check_new_file_of(disk); !makeable) return makeable;
  const std::string directory = existing_directory(directory_of(disk));
  struct statvfs room{};
  if (::statvfs(directory.c_str(), &room) != 0) return fail_making(disk, errno);
  const std::uint64_t bytes = std::uint64_t{room.f_bavail} * room.f_frsize;
  if (bytes >= disk.size_bytes) return {};
  return fail("disk \"" + disk.path + "\" is to have " + std::to_string(disk.size_bytes) +
              " bytes; its file system has room for " + std::to_string(bytes));
}

disk::WitnessFiles witness_files(const config::Config& config) {
  const std::string& directory = config.state.directory;
  return {.path = directory.empty() ? "" : directory + "/disks",
          .read = read_private_file,
          .write = write_private_file};
}

}  // namespace

Result<std::optional<filter::Seed>> seed_of_disks(const config::Config& config) {
  std::optional<filter::Seed> seed;
  const config::Disk* whose = nullptr;
  for (const config::Disk& each : config.disk) {
    const auto found = disk::seed_of_disk(each.path);
    if (!found) return std::unexpected(found.error());
    if (!*found) continue;
    if (seed && **found != *seed) {
      return fail("disks \"" + whose->path + "\" and \"" + each.path +
                  "\" have different seeds; empty them with --clear-disk");
    }
    seed = *found;
    whose = &each;
  }
  return seed;
}

Result<void> check_disk(const config::Disk& disk, const std::optional<filter::Seed>& seed) {
  const auto found = disk::seed_of_disk(disk.path);
  if (!found) return std::unexpected(found.error());
  if (!*found) return check_new_disk(disk);
  if (!seed || **found == *seed) return {};
  return fail(
      "disk \"" + disk.path +
      "\" has another seed than admission.seed; restore that seed, or empty it with --clear-disk");
}

Result<std::vector<std::string>> disks_to_be_emptied(const config::Config& config) {
  const auto seed = seed_of_disks(config);
  if (!seed) return std::unexpected(seed.error());
  if (!*seed) return std::vector<std::string>();
  std::vector<std::string> paths;
  for (const config::Disk& each : config.disk) paths.push_back(each.path);
  return disk::DiskSet::to_be_emptied(paths, disk::DiskWitness(witness_files(config)), **seed);
}

void take_found_segments(config::Config& config) {
  for (config::Disk& each : config.disk) {
    const auto found = disk::segment_bytes_of_disk(each.path);
    if (found && *found) each.segment_bytes = **found;
  }
}

void keep_segments(const config::Config& running, config::Config& wanted) {
  for (config::Disk& each : wanted.disk) {
    const auto same = std::ranges::find(running.disk, each.path, &config::Disk::path);
    if (same != running.disk.end()) each.segment_bytes = same->segment_bytes;
  }
}

disk::DisksOptions disk_options(const config::Config& config, const filter::Seed& identity_seed) {
  disk::DisksOptions options;
  for (const config::Disk& each : config.disk) {
    options.disks.push_back(
        {.path = each.path, .bytes = each.size_bytes, .segment_bytes = each.segment_bytes});
  }
  options.identity_seed = identity_seed;
  options.matches_rule = [bans = std::make_shared<SavedBans>()](const disk::Purge& rule,
                                                                const disk::RecordFront& front) {
    return matches_rule(rule, front, *bans);
  };
  return options;
}

Result<std::unique_ptr<disk::Disks>> open_disks(
    const config::Config& config, const filter::Seed& identity_seed, bool clear,
    std::optional<std::map<std::string, int>> handed_over) {
  if (config.disk.empty()) return nullptr;
  for (const config::Disk& each : config.disk) {
    if (auto made = make_directory_of(each); !made) return std::unexpected(made.error());
  }
  disk::DisksOptions options = disk_options(config, identity_seed);
  options.clear = clear;
  options.witness = witness_files(config);
  options.handed_over = std::move(handed_over);
  return disk::Disks::open(options);
}

}  // namespace encore::server
