#include "tests/disk/model/start.h"

#include <algorithm>

#include "cache/disk_parts.h"
#include "proxy/disk/open.h"
#include "proxy/disk/record_reader.h"
#include "tests/disk/model/watched_file.h"

namespace encore::disk {
namespace {

// The whole body that lies in one record; false: not sound.
bool append_body(RecordReader& reader, std::uint64_t bytes, std::string& body) {
  for (std::uint64_t done = 0; done < bytes;) {
    const auto piece = reader.read(done, bytes);
    if (!piece) return false;
    body.append(reinterpret_cast<const char*>(piece->data()), piece->size());
    done += piece->size();
  }
  return true;
}

}  // namespace

std::optional<Committed> read_record(File& file, const Superblock& superblock,
                                     const cache::DiskPlace& place, std::uint64_t sequence,
                                     const filter::Hash128& key) {
  RecordReader reader(file, superblock);
  const auto opened = reader.open({place, sequence, key, {}});
  if (!opened) return std::nullopt;
  const RecordFront& front = **opened;
  Committed object{front.fields,
                   std::string(front.text.key),
                   std::string(front.text.names),
                   std::string(front.text.meta),
                   std::string(front.text.head),
                   {}};
  if (!append_body(reader, front.shape.body_bytes, object.body)) return std::nullopt;
  return object;
}

Start::Start(File& file, const Superblock& superblock, const RecoveryOptions& options)
    : purges_(std::make_unique<PurgeLog>(file, superblock)) {
  Recovery recovery(file, superblock, *purges_, *this, options);
  if (auto begun = recovery.begin(); !begun) {
    refusal_ = begun.error().message;
    return;
  }
  while (recovery.step()) {
  }
  found_ = recovery.found();
  counts_ = recovery.counts();
  choose(file, superblock);
}

void Start::on_records(const FoundRecords& records) {
  for (const RecordLine& line : records.lines) {
    records_.push_back({line, records.segment, records.sequence});
  }
}

Start::Numbers Start::newest_of_each() {
  Numbers newest;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const RecordLine& line = records_[i].line;
    if (line.kind == RecordKind::kPart) {
      if (part_of_.emplace(line.key, i).second) parts_.push_back(i);
      continue;
    }
    const auto [at, is_first] = newest.emplace(line.key, i);
    const FoundRecord& before = records_[at->second];
    if (is_first || line.version <= before.line.version) continue;
    if (records_[i].segment != before.segment) {
      out_of_order_ = "version " + std::to_string(before.line.version) + " before " +
                      std::to_string(line.version);
    }
    at->second = i;
  }
  return newest;
}

std::optional<Committed> Start::read_whole(File& file, const Superblock& superblock,
                                           const FoundRecord& record) {
  auto object = read_record(file, superblock, record.place(), record.sequence, record.line.key);
  if (!object || object->fields.kind != RecordKind::kHead) return object;
  const std::uint64_t parts = model_parts(object->fields.body_bytes);
  if (parts > part_of_.size()) return std::nullopt;
  for (std::uint64_t i = 0; i < parts; ++i) {
    const auto key = cache::part_key(object->fields.key, object->fields.body, i).hash;
    const auto found = part_of_.find(key);
    if (found == part_of_.end()) return std::nullopt;
    const FoundRecord& at = records_[found->second];
    const auto part = read_record(file, superblock, at.place(), at.sequence, key);
    if (!part) return std::nullopt;
    object->body += part->body;
  }
  if (object->body.size() != object->fields.body_bytes) return std::nullopt;
  return object;
}

void Start::choose(File& file, const Superblock& superblock) {
  const Numbers newest = newest_of_each();
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const FoundRecord& record = records_[i];
    const auto at = newest.find(record.line.key);
    if (at == newest.end() || at->second != i) continue;
    auto object = read_whole(file, superblock, record);
    if (!object) continue;
    const auto is_dead = [&](const Purge& rule) {
      return is_purged_by(rule, object->fields, object->key, object->meta);
    };
    if (std::ranges::any_of(rules_, is_dead)) continue;
    winners_.push_back({record, std::move(*object)});
  }
}

std::optional<std::string> fault_on(const Image& image, const History& history,
                                    std::uint64_t* found) {
  ImageFile file(image);
  const auto superblock = read_superblock(file);
  if (!superblock) return std::nullopt;
  const Start start(file, *superblock, {.writes_footers = false});
  for (const Start::Winner& winner : start.winners()) {
    if (found != nullptr) ++*found;
    if (auto wrong = history.fault_of(winner.object)) return wrong;
  }
  return std::nullopt;
}

}  // namespace encore::disk
