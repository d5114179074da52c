// The disks of a cache before they are opened for service: their files, taken for this process, and
// which of them have missed a purge (runs.h). Thread-compatible; blocks in the devices.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "filter/hash.h"
#include "proxy/disk/disk_witness.h"
#include "proxy/disk/file.h"
#include "proxy/disk/format.h"
#include "proxy/disk/runs.h"

namespace encore::disk {

class DiskSet {
 public:
  // Sentences on those disks of this seed, of the ones that are there, that a start would empty.
  // Changes nothing. Errors: as open() and look().
  static Result<std::vector<std::string>> to_be_emptied(const std::vector<std::string>& paths,
                                                        const DiskWitness& witness,
                                                        const filter::Seed& identity_seed);

  struct Member {
    std::unique_ptr<File> file;
    std::string path;
    std::optional<Superblock> superblock;     // nothing: there is no disk of ours yet
    bool is_new_file = false;                 // made here
    std::string emptied_for;                  // why nothing on it may be used; empty: all may
    std::optional<LogPosition> position_min;  // position of its purge log, as the witness knows it
  };
  using OpenFile = std::function<Result<std::unique_ptr<File>>(const std::string& path)>;

  // Opens these files. Errors: `open`; none of the files made here is left behind.
  static Result<DiskSet> open(const std::vector<std::string>& paths, const OpenFile& open);

  // Reads the superblocks, and decides on the disks of this seed; those of another one are left for
  // open_disk() to refuse. Errors: find_disk(), DiskWitness::read().
  Result<void> look(const DiskWitness& witness, const filter::Seed& identity_seed);

  // Removes the files that were made here, from this member on.
  void remove_new_files(std::size_t from = 0) const;

  std::vector<Member>& members() { return members_; }
  // The newest history known. REQUIRES: look().
  const RunHistory& runs() const { return known_.history; }

 private:
  void decide(const RunHistory& witness, const std::vector<std::optional<WitnessRecord>>& beside);
  std::string why_emptied(std::size_t number) const;

  std::vector<Member> members_;
  KnownRuns known_;
};

}  // namespace encore::disk
