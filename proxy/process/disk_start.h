// The disks of a configuration, at a start. One thread, before the workers run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "filter/hash.h"
#include "proxy/disk/disks.h"

namespace encore::server {

// Returns the seed with which the keys of the existing disks were hashed; nothing where none is
// there yet, or none is configured. Errors: disks with different seeds, a disk that cannot be read.
Result<std::optional<filter::Seed>> seed_of_disks(const config::Config& config);

// Checks if a start could take this disk: it is one of this seed (none: of any), or can be made.
// Changes nothing. Errors: those of seed_of_disks(), another seed, a directory that cannot be made
// or written to, too little room.
Result<void> check_disk(const config::Disk& disk, const std::optional<filter::Seed>& seed);

// A disk keeps the segments that it was made with, whatever the configuration says of new ones:
// takes over those of the disks that are there. An entry for a disk that cannot be read stays.
void take_found_segments(config::Config& config);
// The same at a reload, which waits for no device: those that the running one has.
void keep_segments(const config::Config& running, config::Config& wanted);

// Which of the disks a start would empty, for they have missed purges: a sentence each. Changes
// nothing. Errors: a disk that cannot be looked at, a damaged witness.
Result<std::vector<std::string>> disks_to_be_emptied(const config::Config& config);

// How they are opened.
disk::DisksOptions disk_options(const config::Config& config, const filter::Seed& identity_seed);
// Null where none is configured. Directories that are missing are made. `clear`: existing disks are
// replaced by new ones. `handed_over`: their files, if another process still has them
// (DisksOptions::handed_over). Errors: make_directory(), disk::Disks::open().
Result<std::unique_ptr<disk::Disks>> open_disks(
    const config::Config& config, const filter::Seed& identity_seed, bool clear,
    std::optional<std::map<std::string, int>> handed_over = {});

}  // namespace encore::server
