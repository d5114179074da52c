// A stored response as a record of the disk tier, and back. Thread-safe: records are written and
// read on threads of their own.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/time.h"
#include "filter/hash.h"
#include "proxy/disk/disks.h"
#include "proxy/disk/record.h"
#include "proxy/disk/record_reader.h"
#include "proxy/store/object.h"
#include "proxy/store/store.h"
#include "proxy/transfer/saved_meta.h"

namespace encore::server {

// Bytes of the record of an object, without its body where that lies in parts; nothing where there
// is no record of such a one.
std::optional<std::uint64_t> record_bytes_of(const store::Object& object);

// As the kernel has them.
struct EntryTimes {
  MonotonicTime fresh_until;
  MonotonicTime keep_until;
};
// Holds the object until it is written. Null where record_bytes_of() is nothing.
std::unique_ptr<disk::RecordSource> make_record_source(store::ObjectRef object,
                                                       const filter::Hash128& key,
                                                       const EntryTimes& times,
                                                       const Clocks& clocks);

// A part of a body, which others may still be writing to: bytes [begin, begin + bytes), all of
// which are there, from where the cursor stands.
struct BodyPart {
  store::Body::Cursor cursor;
  std::uint64_t bytes = 0;
  std::uint64_t body = 0;  // LargeBody::number
  std::uint32_t number = 0;
};
std::uint64_t record_bytes_of_part(std::uint64_t bytes);
// Holds what it needs of the body until it is written. `key`: cache::part_key().
std::unique_ptr<disk::RecordSource> make_part_source(BodyPart part, const filter::Hash128& key,
                                                     const Clocks& clocks);

enum class LoadFault : std::uint8_t {
  kDamaged,   // it is not what was written
  kNoMemory,  // the store has no room for it
};
// Memory for the body of a record that takes `record_bytes`, to be read with its front
// (RecordReader::Wanted::body_room); none where it is short, or there is no memory.
struct BodyBuffer {
  store::BodyRef body;
  std::span<std::byte> bytes;
};
BodyBuffer make_body_room(store::Store& store, std::uint64_t record_bytes);
// The object of a record whose front is verified; one that is on disk alone where its body lies in
// parts. Blocks in the device. Moments are those of `clocks`. `room`: where the record's body was
// read to; else none.
std::expected<store::ObjectRef, LoadFault> load_object(store::Store& store,
                                                       const disk::RecordFront& front,
                                                       disk::RecordReader& reader,
                                                       const Clocks& clocks,
                                                       store::BodyRef room = {});

}  // namespace encore::server
