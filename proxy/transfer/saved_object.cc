#include "proxy/transfer/saved_object.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cache/charge.h"
#include "cache/disk_parts.h"
#include "proxy/transfer/response.h"

namespace encore::server {
namespace {

disk::RecordShape shape_of(const store::Object& object) {
  return {.key_bytes = static_cast<std::uint32_t>(object.key().size()),
          .names_bytes = meta_of(object).names_bytes,
          .meta_bytes = static_cast<std::uint32_t>(kSavedMetaBytes),
          .head_bytes = static_cast<std::uint32_t>(object.head().size()),
          .body_bytes = meta_of(object).large_bytes != 0 ? 0 : object.body_size()};
}

// Whole seconds, never more than there are; what is beyond them is their end.
disk::WallSeconds to_wall(MonotonicTime moment, const Clocks& clocks) {
  constexpr auto kEnd = std::numeric_limits<disk::WallSeconds>::max();
  using std::chrono::floor;
  using std::chrono::seconds;
  // In seconds, where neither the difference nor the sum is beyond 64 bits.
  const auto apart = floor<seconds>(moment.time_since_epoch()) -
                     floor<seconds>(clocks.monotonic.time_since_epoch());
  const auto wall = floor<seconds>(clocks.wall.time_since_epoch()) + apart;
  return static_cast<disk::WallSeconds>(std::clamp<std::int64_t>(wall.count(), 0, kEnd));
}

class ObjectSource final : public disk::RecordSource {
 public:
  ObjectSource(store::ObjectRef object, const filter::Hash128& key, const EntryTimes& times,
               const Clocks& clocks)
      : object_(std::move(object)),
        meta_(save_meta(meta_of(*object_), clocks)),
        fields_{.kind = disk::RecordKind::kObject,
                .key = key,
                .variant = meta_of(*object_).variant,
                .fresh_until = to_wall(times.fresh_until, clocks),
                .keep_until = to_wall(std::max(times.fresh_until, times.keep_until), clocks),
                .stored_at = to_wall(clocks.monotonic, clocks),
                .body_bytes = object_->body_size()} {
    if (const auto large = large_body_of(*object_)) {
      fields_.kind = disk::RecordKind::kHead;
      fields_.body = large->number;
      fields_.body_bytes = large->length;
    } else {
      take_body();
    }
  }

  // The head of a body in parts exists only here.
  bool is_urgent() const override { return fields_.kind == disk::RecordKind::kHead; }
  disk::Record record() const override {
    return {.fields = fields_,
            .text = {.key = object_->key(),
                     .names = names_of(*object_),
                     .meta = {meta_.data(), meta_.size()},
                     .head = object_->head()},
            .body = body_};
  }

 private:
  // Takes the body of an object: that keeps every byte for as long as it lives.
  void take_body() {
    if (object_->body_size() == 0) return;
    if (object_->is_inline()) {
      const std::string_view body = object_->inline_body();
      body_.push_back({const_cast<char*>(body.data()), body.size()});  // NOLINT: iovec reads too
      return;
    }
    auto cursor = object_->body()->open(0);
    ENCORE_CHECK(cursor.has_value(), "the body of an object is kept whole");
    std::array<iovec, 16> room;
    while (!cursor->at_end()) {
      const auto peeked = cursor->peek(room, object_->body_size());
      body_.insert(body_.end(), room.begin(),
                   room.begin() + static_cast<std::ptrdiff_t>(peeked.parts));
      cursor->advance(peeked.bytes);
    }
  }

  store::ObjectRef object_;
  SavedMeta meta_;
  disk::RecordFields fields_;
  std::vector<iovec> body_;
};

class PartSource final : public disk::RecordSource {
 public:
  PartSource(BodyPart part, const filter::Hash128& key, const Clocks& clocks)
      : cursor_(std::move(part.cursor)),
        fields_{.kind = disk::RecordKind::kPart,
                .part = part.number,
                .key = key,
                // A part has no times of its own: its head says for how long it is of use.
                .fresh_until = kAlways,
                .keep_until = kAlways,
                .stored_at = to_wall(clocks.monotonic, clocks),
                .body_bytes = part.bytes,
                .body = part.body} {
    body_.resize(kPiecesFirst);
    auto peeked = cursor_.peek(body_, part.bytes);
    while (peeked.bytes != part.bytes) {
      ENCORE_CHECK(peeked.parts == body_.size(), "all of a part is there when it is written");
      body_.resize(body_.size() * 2);
      peeked = cursor_.peek(body_, part.bytes);
    }
    body_.resize(peeked.parts);
  }

  disk::Record record() const override { return {.fields = fields_, .text = {}, .body = body_}; }

 private:
  static constexpr auto kAlways = std::numeric_limits<disk::WallSeconds>::max();
  static constexpr std::size_t kPiecesFirst = cache::kPartBytes / store::kTransferChunkBytes + 1;

  store::Body::Cursor cursor_;  // its reference keeps the later bytes
  disk::RecordFields fields_;
  std::vector<iovec> body_;
};

using Loaded = std::expected<store::ObjectRef, LoadFault>;

Loaded made(Result<store::ObjectRef> object) {
  if (!object) return std::unexpected(LoadFault::kNoMemory);
  return std::move(*object);
}

// The next bytes of a record's body, into the body of an object.
std::expected<void, LoadFault> read_piece(disk::RecordReader& reader, std::uint64_t bytes,
                                          store::Body& body) {
  const std::uint64_t begin = body.size();
  const auto rest = static_cast<std::size_t>(bytes - begin);
  const std::span<std::byte> room = body.writable(rest);
  if (room.empty()) return std::unexpected(LoadFault::kNoMemory);
  const std::size_t block = std::min(rest, disk::kBlockBytes);
  if (begin % disk::kBlockBytes == 0 && room.size() >= block) {
    const auto read = reader.read_into(begin, room);
    if (!read) return std::unexpected(LoadFault::kDamaged);
    body.append(*read);
    return {};
  }
  const auto piece = reader.read(begin, begin + std::min(rest, room.size()));
  if (!piece) return std::unexpected(LoadFault::kDamaged);
  std::memcpy(room.data(), piece->data(), piece->size());
  body.append(piece->size());
  return {};
}

Loaded load_large(store::Store& store, const store::ObjectParts& parts, std::uint64_t bytes,
                  disk::RecordReader& reader, store::BodyRef room) {
  const bool has_room = static_cast<bool>(room);
  auto writer = store.reserve({.key = parts.key, .length = bytes, .body = std::move(room)});
  if (!writer) return std::unexpected(LoadFault::kNoMemory);
  store::Body& body = *(*writer)->body();
  body.set_use(store::BodyUse::kStored);
  if (has_room) {
    const auto there = reader.read_room();
    if (!there) {
      body.abort();
      return std::unexpected(LoadFault::kDamaged);
    }
    body.append(*there);
  }
  while (body.size() < bytes) {
    if (auto read = read_piece(reader, bytes, body); !read) {
      body.abort();
      return std::unexpected(read.error());
    }
  }
  body.complete();
  return made((*writer)->commit(parts));
}

}  // namespace

std::optional<std::uint64_t> record_bytes_of(const store::Object& object) {
  const disk::RecordShape shape = shape_of(object);
  if (!disk::is_sound(shape)) return std::nullopt;
  return disk::record_bytes(shape);
}

std::unique_ptr<disk::RecordSource> make_record_source(store::ObjectRef object,
                                                       const filter::Hash128& key,
                                                       const EntryTimes& times,
                                                       const Clocks& clocks) {
  if (!record_bytes_of(*object)) return nullptr;
  return std::make_unique<ObjectSource>(std::move(object), key, times, clocks);
}

std::uint64_t record_bytes_of_part(std::uint64_t bytes) {
  return disk::record_bytes({.body_bytes = bytes});
}

std::unique_ptr<disk::RecordSource> make_part_source(BodyPart part, const filter::Hash128& key,
                                                     const Clocks& clocks) {
  return std::make_unique<PartSource>(std::move(part), key, clocks);
}

BodyBuffer make_body_room(store::Store& store, std::uint64_t record_bytes) {
  // The body of a smaller one does not begin at a page.
  if (record_bytes < cache::kDiskPageAligned + disk::kPageBytes) return {};
  const std::uint64_t behind = record_bytes - disk::kPageBytes;
  auto body = store.make_body({.length = behind, .use = store::BodyUse::kStored});
  if (!body) return {};
  // Whole pages, the last one too: it may be longer than the body.
  const auto pages = static_cast<std::size_t>((behind + disk::kPageBytes - 1) / disk::kPageBytes);
  const std::span<std::byte> bytes = (*body)->writable(pages * disk::kPageBytes);
  if (bytes.empty()) return {};
  return {.body = std::move(*body), .bytes = bytes};
}

Loaded load_object(store::Store& store, const disk::RecordFront& front, disk::RecordReader& reader,
                   const Clocks& clocks, store::BodyRef room) {
  const disk::RecordText& text = front.text;
  const auto meta =
      load_meta(std::as_bytes(std::span(text.meta)),
                {.key_bytes = text.key.size(), .head_bytes = text.head.size()}, clocks);
  if (!meta || front.fields.kind == disk::RecordKind::kPart) {
    return std::unexpected(LoadFault::kDamaged);
  }
  const store::ObjectParts parts = {
      .key = text.key, .meta = std::as_bytes(std::span(&*meta, 1)), .head = text.head};
  const auto large = HeadParts{.meta = *meta, .head = text.head}.large_body();
  if (front.fields.kind == disk::RecordKind::kHead) {
    const LargeBody stated{.number = front.fields.body, .length = front.fields.body_bytes};
    if (large != stated || stated.length == 0) return std::unexpected(LoadFault::kDamaged);
  } else if (large) {
    return std::unexpected(LoadFault::kDamaged);
  }
  const std::uint64_t bytes = large ? 0 : front.fields.body_bytes;
  if (!cache::is_inline({.key = text.key.size(),
                         .meta = sizeof(ObjectMeta),
                         .head = text.head.size(),
                         .body = bytes})) {
    return load_large(store, parts, bytes, reader, std::move(room));
  }
  std::string body;
  while (body.size() < bytes) {
    const auto piece = reader.read(body.size(), bytes);
    if (!piece) return std::unexpected(LoadFault::kDamaged);
    body.append(reinterpret_cast<const char*>(piece->data()), piece->size());
  }
  const iovec part{body.data(), body.size()};
  return made(store.make_small(parts, std::span(&part, body.empty() ? 0 : 1)));
}

}  // namespace encore::server
