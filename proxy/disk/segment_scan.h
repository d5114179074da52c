// Contents of a segment: by its footer, or, without a sound one, record by record: each with a
// sound header, front and body. A damaged one is passed over by the size in its header; without a
// header, the scan searches the next one at every unit. Each byte is hashed at most once, except
// false headers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/file.h"
#include "proxy/disk/footer.h"
#include "proxy/disk/format.h"

namespace encore::disk {

// Memory for one footer after the other: a reader that returns the lines needs no more, and leaves
// no holes between its other allocations.
struct FooterBuffer {
  AlignedBuffer bytes;
  std::vector<RecordLine> lines;
};

// Nothing: none of this turn, damaged, or not to be read. Memory: the footer, 64 KiB at least; the
// room's, if it is not null, whose lines go into the footer.
std::optional<Footer> read_footer(File& file, const Superblock& superblock,
                                  const SegmentHeader& header, FooterBuffer* room = nullptr);

struct ScannedSegment {
  Footer footer;                       // as it would have been
  std::uint64_t end = 0;               // end of the last record
  std::vector<std::uint64_t> damaged;  // begins of incomplete records
  bool is_readable = true;             // the device gave all of it
};

// Blocks in the device. Memory: 1 MiB, or what a front takes.
ScannedSegment scan_segment(File& file, const Superblock& superblock, const SegmentHeader& header);

}  // namespace encore::disk
