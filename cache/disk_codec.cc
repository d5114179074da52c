#include "cache/disk_codec.h"

#include "cache/byte_format.h"

namespace encore::cache {
namespace {

using Reader = ByteReader<ByteView>;

void write(ByteWriter& writer, const DiskPlace& place) {
  writer.number(place.disk);
  writer.number(place.segment);
  writer.number(place.unit);
  writer.number(place.bytes);
}

void read(Reader& reader, DiskPlace& place) {
  const std::uint64_t disk = reader.number();
  const std::uint64_t segment = reader.number();
  const std::uint64_t unit = reader.number();
  place.bytes = reader.number();
  if (disk >= kDisksMax || segment >= kSegmentsMax || unit >= kSegmentBytesMax / kDiskUnit ||
      place.bytes > kSegmentBytesMax || place.bytes == 0 || place.bytes != disk_room(place.bytes)) {
    reader.fail();
    return;
  }
  place.disk = static_cast<std::uint16_t>(disk);
  place.segment = static_cast<std::uint32_t>(segment);
  place.unit = static_cast<std::uint32_t>(unit);
}

// Flags of a record.
constexpr std::uint64_t kVisited = 1;
constexpr std::uint64_t kPart = 2;

void write(ByteWriter& writer, const DiskRecord& record) {
  writer.fixed(record.key.lo, 8);
  writer.fixed(record.key.hi, 8);
  writer.fixed(record.variant, 4);
  writer.fixed(record.names, 2);
  writer.fixed((record.visited ? kVisited : 0) | (record.part ? kPart : 0), 1);
  write(writer, record.place);
  writer.number(ticks(record.fresh_until));
  writer.difference(ticks(record.keep_until), ticks(record.fresh_until));
}

void read(Reader& reader, DiskRecord& record) {
  record.key.lo = reader.fixed(8);
  record.key.hi = reader.fixed(8);
  record.variant = static_cast<std::uint32_t>(reader.fixed(4));
  record.names = static_cast<std::uint16_t>(reader.fixed(2));
  const std::uint64_t flags = reader.fixed(1);
  record.visited = (flags & kVisited) != 0;
  record.part = (flags & kPart) != 0;
  read(reader, record.place);
  record.fresh_until = time_of(reader.number());
  record.keep_until = time_of(reader.difference(ticks(record.fresh_until)));
  if (flags > (kVisited | kPart) || record.names >= kDiskNamesMax) {
    reader.fail();
  }
}

void write(ByteWriter& writer, std::uint64_t number) { writer.number(number); }
void read(Reader& reader, std::uint64_t& number) { number = reader.number(); }

template <typename T>
std::string encode(std::span<const T> items) {
  std::string out;
  ByteWriter writer(out);
  for (const T& item : items) {
    write(writer, item);
  }
  return out;
}

template <typename T>
Result<std::vector<T>> decode(std::string_view bytes, std::string_view what) {
  ByteView view(bytes);
  Reader reader(view);
  std::vector<T> items;
  while (!view.rest().empty()) {
    T item{};
    read(reader, item);
    if (!reader.ok()) {
      return fail("damaged " + std::string(what) + ", number " + std::to_string(items.size() + 1));
    }
    items.push_back(item);
  }
  return items;
}

}  // namespace

std::string encode_places(std::span<const DiskPlace> places) { return encode(places); }
Result<std::vector<DiskPlace>> decode_places(std::string_view bytes) {
  return decode<DiskPlace>(bytes, "places on disk");
}

std::string encode_records(std::span<const DiskRecord> records) { return encode(records); }
Result<std::vector<DiskRecord>> decode_records(std::string_view bytes) {
  return decode<DiskRecord>(bytes, "records of a disk");
}

std::string encode_sequences(std::span<const std::uint64_t> sequences) { return encode(sequences); }
Result<std::vector<std::uint64_t>> decode_sequences(std::string_view bytes) {
  return decode<std::uint64_t>(bytes, "sequences of segments");
}

}  // namespace encore::cache
