// The footer of a segment: what it holds, a line a record, so that a start reads footers only. It
// ends with the segment. Pure, bytes from a disk are not trusted.
//
//   lines    48 bytes each: key's hash, variant, version (7 bytes), kind, unit and room in units
//            (3 bytes each), names, fresh until, keep until
//   names    for each text its number, its length and itself
//   zeros    up to whole pages
//   head     64 bytes: "ENCOFOOT", sequence, highest version, records, bytes of names, checksum of
//            all before it
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/disk_place.h"
#include "proxy/disk/record.h"

namespace encore::disk {

// A footer's data about a record. For a part, its body's number replaces the variant, and its own
// number keep_until.
struct RecordLine {
  RecordKind kind = RecordKind::kObject;
  filter::Hash128 key;
  std::uint64_t variant = 0;       // 0 for a part
  std::uint64_t body = 0;          // only for a part
  cache::DiskVersion version = 0;  // below 2^56
  std::uint32_t unit = 0;
  std::uint32_t room_units = 0;
  std::uint16_t names = 0;  // the number of a text of this segment; 0: none
  WallSeconds fresh_until = 0;
  WallSeconds keep_until = 0;
  std::uint32_t part = 0;
  friend bool operator==(const RecordLine&, const RecordLine&) = default;
};
// `names`: the number of the record's text.
RecordLine line_of(const RecordFields& fields, const cache::DiskPlace& place, std::uint16_t names);

// The texts of the names that a segment's records vary by, numbered from 1 on.
class NameTable {
 public:
  // 0 for an empty one.
  std::uint16_t number_of(std::string_view text);
  // In the order of their numbers, from 1 on.
  const std::vector<std::string>& texts() const { return texts_; }
  std::string_view text(std::uint16_t number) const {
    return number == 0 ? std::string_view() : std::string_view(texts_[number - 1]);
  }
  // As cache::footer_bytes() counts them.
  std::uint32_t bytes() const { return bytes_; }
  void clear();

 private:
  std::map<std::string, std::uint16_t, std::less<>> numbers_;
  std::vector<std::string> texts_;
  std::uint32_t bytes_ = 0;
};

struct Footer {
  std::uint64_t sequence = 0;
  cache::DiskVersion version_max = 0;
  std::vector<RecordLine> lines;
  NameTable names;
};

std::uint64_t footer_bytes(const Footer& footer);
// Writes the footer into `out`, which ends with the segment. REQUIRES: footer_bytes() of room.
void encode_footer(const Footer& footer, Salt salt, std::uint64_t segment_bytes,
                   std::span<std::byte> out);

// How long the footer is that the segment's last page ends with. Nothing: no such footer of this
// turn.
std::optional<std::uint64_t> footer_length(ConstPage last, std::uint64_t sequence,
                                           std::uint64_t segment_bytes);
// The turn that this last page of a segment says its footer is of. Nothing: no footer ends here.
std::optional<std::uint64_t> footer_sequence(ConstPage last);
// Gives the page what every footer of this turn ends with: one that has lost no more can be read.
void mend_footer(Page last, std::uint64_t sequence);
// `bytes`: of the length that was said; `lines`: memory for the footer's. Nothing: damaged.
std::optional<Footer> decode_footer(std::span<const std::byte> bytes, std::uint64_t sequence,
                                    Salt salt, std::uint64_t segment_bytes,
                                    std::vector<RecordLine> lines = {});

}  // namespace encore::disk
