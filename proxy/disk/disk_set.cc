#include "proxy/disk/disk_set.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "proxy/disk/open.h"

namespace encore::disk {

Result<DiskSet> DiskSet::open(const std::vector<std::string>& paths, const OpenFile& open) {
  DiskSet set;
  for (const std::string& path : paths) {
    std::error_code unknown;  // then it is not ours to remove
    const bool is_new = !std::filesystem::exists(path, unknown) && !unknown;
    auto file = open(path);
    if (!file) {
      set.remove_new_files();
      return std::unexpected(file.error());
    }
    set.members_.push_back({.file = std::move(*file),
                            .path = path,
                            .superblock = std::nullopt,
                            .is_new_file = is_new,
                            .emptied_for = {},
                            .position_min = std::nullopt});
  }
  return set;
}

Result<std::vector<std::string>> DiskSet::to_be_emptied(const std::vector<std::string>& paths,
                                                        const DiskWitness& witness,
                                                        const filter::Seed& identity_seed) {
  std::vector<std::string> there;
  for (const std::string& path : paths) {
    std::error_code error;
    if (std::filesystem::exists(path, error) && !error) there.push_back(path);
  }
  auto set = open(there, [](const std::string& path) { return open_file(path, FileUse::kLook); });
  if (!set) return std::unexpected(set.error());
  if (auto looked = set->look(witness, identity_seed); !looked) {
    return std::unexpected(looked.error());
  }
  std::vector<std::string> sentences;
  for (const Member& member : set->members()) {
    if (member.emptied_for.empty()) continue;
    sentences.push_back("disk " + member.path + ": " + member.emptied_for + "; a start empties it");
  }
  return sentences;
}

void DiskSet::remove_new_files(std::size_t from) const {
  std::error_code unknown;
  for (std::size_t i = from; i < members_.size(); ++i) {
    if (members_[i].is_new_file) std::filesystem::remove(members_[i].path, unknown);
  }
}

Result<void> DiskSet::look(const DiskWitness& witness, const filter::Seed& identity_seed) {
  const auto witness_record = witness.read();
  if (!witness_record) return std::unexpected(witness_record.error());
  std::vector<std::optional<WitnessRecord>> beside;
  for (Member& member : members_) {
    auto found = find_disk(*member.file);
    if (!found) return std::unexpected(found.error());
    beside.emplace_back();
    if (!*found || (*found)->identity_seed != identity_seed) continue;
    member.superblock = *found;
    const Uuid& uuid = member.superblock->uuid;
    beside.back() = witness.read_beside(member.path, uuid);
    member.position_min =
        beside.back() ? beside.back()->position_of(uuid) : witness_record->position_of(uuid);
  }
  decide(witness_record->runs, beside);
  return {};
}

void DiskSet::decide(const RunHistory& witness,
                     const std::vector<std::optional<WitnessRecord>>& beside) {
  std::vector<RunHistory> histories;
  for (const auto& witness_record : beside) {
    if (witness_record) histories.push_back(witness_record->runs);
  }
  for (const Member& member : members_) {
    if (member.superblock) histories.push_back(member.superblock->runs);
  }
  known_ = known_runs(witness, histories);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    members_[i].emptied_for = why_emptied(i);
  }
}

std::string DiskSet::why_emptied(std::size_t number) const {
  const Member& member = members_[number];
  if (!member.superblock) return "";
  for (std::size_t i = 0; i < number; ++i) {
    const auto& other = members_[i].superblock;
    if (other && other->uuid == member.superblock->uuid) {
      return "it is a copy of disk " + members_[i].path;
    }
  }
  if (known_.is_forked) return "it is one of several copies that were used apart";
  // No run had a purge if none is known yet.
  const RunId last = member.superblock->runs.newest();
  if (known_.history.empty() || known_.history.is_valid(last)) return "";
  return last == 0 ? "an earlier version used it last, and it has missed purges since"
                   : "it was away, or is an older copy, and has missed purges";
}

}  // namespace encore::disk
