#include "tests/disk_cli/made/made_disk.h"

#include "base/check.h"
#include "cache/disk_parts.h"
#include "filter/hash.h"
#include "proxy/disk/open.h"
#include "proxy/disk/record.h"
#include "proxy/transfer/saved_meta.h"

namespace encore::disk {
namespace {

constexpr filter::Seed kSeed{0x5ec2e75eed5ec2e7, 0x0ddba11c0ffee000};
constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";

filter::Hash128 identity_of(std::string_view primary_key) {
  return filter::identify(kSeed, primary_key).hash;
}

// The number of its body: the same on all disks.
std::uint64_t body_of(const filter::Hash128& key) { return key.hi | 1U; }

}  // namespace

MadeDisk::MadeDisk(File& file, std::uint64_t disk_bytes, std::uint64_t segment_bytes,
                   WallSeconds now) {
  const auto opened = open_disk(file, {.disk_bytes = disk_bytes,
                                       .segment_bytes = segment_bytes,
                                       .identity_seed = kSeed,
                                       .uuid = {3, 4},
                                       .now = now,
                                       .clear = false});
  ENCORE_CHECK(opened.has_value(), "a new disk can be made");
  superblock_ = *opened;
  purges_ = std::make_unique<PurgeLog>(file, superblock_);
  ENCORE_CHECK(purges_->load([](const Purge&) {}).has_value(), "it has an empty log");
  writer_ = std::make_unique<SegmentWriter>(file, superblock_, SegmentWriter::FoundState{});
  log_ = std::make_unique<cache::SegmentLog>(cache::SegmentLog::Settings{
      .segments = superblock_.segments, .segment_bytes = superblock_.segment_bytes});
}

std::string MadeDisk::key_of(const MadeObject& object) const { return object.realm + object.url; }

cache::DiskVersion MadeDisk::write(const MadeObject& object) {
  if (object.body_bytes > cache::kWholeBodyMax) {
    for (std::uint64_t i = 0; i < cache::part_count(object.body_bytes); ++i) write_part(object, i);
  }
  return write_head(object);
}

void MadeDisk::write_part(const MadeObject& object, std::uint64_t part) {
  const std::string body(cache::part_bytes(object.body_bytes, part), 'b');
  const iovec piece{const_cast<char*>(body.data()), body.size()};
  const filter::Hash128 key = identity_of(key_of(object));
  const Record record{.fields = {.kind = RecordKind::kPart,
                                 .part = static_cast<std::uint32_t>(part),
                                 .key = cache::part_key(key, body_of(key), part).hash,
                                 .variant = 0,
                                 .version = ++version_,
                                 .fresh_until = UINT32_MAX,
                                 .keep_until = UINT32_MAX,
                                 .stored_at = object.stored_at,
                                 .body_bytes = body.size(),
                                 .body = body_of(key)},
                      .text = {},
                      .body = {&piece, 1}};
  write(record, object.stored_at);
}

cache::DiskVersion MadeDisk::write_head(const MadeObject& object) {
  const std::string primary = key_of(object);
  const std::string key = primary + object.names + object.variant_key;
  std::string head(kHead);
  for (const std::string& tag : object.tags) head += tag + "\n";
  server::ObjectMeta meta;
  meta.http.head_bytes = static_cast<std::uint32_t>(kHead.size());
  meta.primary_bytes = static_cast<std::uint32_t>(primary.size());
  meta.names_bytes = static_cast<std::uint32_t>(object.names.size());
  meta.tag_bytes = static_cast<std::uint32_t>(head.size() - kHead.size());
  meta.variant = object.names.empty() ? 0 : identity_of(object.variant_key).lo;
  const server::SavedMeta saved = server::save_meta(meta, {});
  const bool in_parts = object.body_bytes > cache::kWholeBodyMax;
  const std::string body(in_parts ? 0 : object.body_bytes, 'b');
  const iovec piece{const_cast<char*>(body.data()), body.size()};
  const filter::Hash128 hash = identity_of(primary);
  const Record record{.fields = {.kind = in_parts ? RecordKind::kHead : RecordKind::kObject,
                                 .part = 0,
                                 .key = hash,
                                 .variant = meta.variant,
                                 .version = ++version_,
                                 .fresh_until = object.stored_at + object.fresh_for,
                                 .keep_until = object.stored_at + object.fresh_for + 86'400,
                                 .stored_at = object.stored_at,
                                 .body_bytes = object.body_bytes,
                                 .body = in_parts ? body_of(hash) : 0},
                      .text = {.key = key,
                               .names = object.names,
                               .meta = {saved.data(), saved.size()},
                               .head = head},
                      .body = {&piece, 1}};
  write(record, object.stored_at);
  return version_;
}

void MadeDisk::write(const Record& record, WallSeconds now) {
  const std::string_view names = record.text.names;
  const auto placed = log_->place({.bytes = record_bytes(shape_of(record)),
                                   .names = static_cast<std::uint16_t>(names.empty() ? 0 : 1),
                                   .names_bytes = static_cast<std::uint32_t>(names.size()),
                                   .why = cache::WriteReason::kAdmit});
  ENCORE_CHECK(placed.has_value(), "there is room for it");
  if (placed->turn.sequence != 0) (void)writer_->open(placed->turn, now);
  writer_->add(record, placed->place);
}

void MadeDisk::purge_url(const MadeObject& object) {
  Purge purge;
  purge.key = identity_of(key_of(object));
  this->purge(std::move(purge));
}

void MadeDisk::purge_tag(const std::string& tag) {
  Purge purge;
  purge.kind = PurgeKind::kTag;
  purge.pattern = tag;
  this->purge(std::move(purge));
}

void MadeDisk::purge(Purge purge) {
  purge.version = ++version_;
  purge.sequence = writer_->sequence_max();
  ENCORE_CHECK(purges_->append({&purge, 1}).has_value(), "the log takes it");
}

void MadeDisk::flush() { ENCORE_CHECK(writer_->flush().has_value(), "the device takes it"); }
void MadeDisk::stop() { ENCORE_CHECK(writer_->seal().has_value(), "the device takes it"); }

}  // namespace encore::disk
