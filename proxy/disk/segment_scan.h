// What a segment holds: by its footer, or, without a sound one, found record by record: each whose
// header, front and body are sound. One that is damaged is passed over by what its header says;
// where no header is, the next is looked for at every unit. Each byte is hashed at most once, but
// for headers that are none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/file.h"
#include "proxy/disk/footer.h"
#include "proxy/disk/format.h"

namespace encore::disk {

// Memory for one footer after the other: whoever puts the lines back needs no more of it, and
// leaves no holes between what is made of them.
struct FooterRoom {
  AlignedBuffer bytes;
  std::vector<RecordLine> lines;
};

// Nothing: none of this turn, damaged, or not to be read. Memory: the footer, 64 KiB at least; the
// room's, if it is not null, whose lines go into the footer.
std::optional<Footer> read_footer(File& file, const Superblock& superblock,
                                  const SegmentHeader& header, FooterRoom* room = nullptr);

struct ScannedSegment {
  Footer footer;                       // as it would have been
  std::uint64_t end = 0;               // of the last record
  std::vector<std::uint64_t> damaged;  // where records began that are not whole
  bool is_readable = true;             // the device gave all of it
};

// Blocks in the device. Memory: 1 MiB, or what a front takes.
ScannedSegment scan_segment(File& file, const Superblock& superblock, const SegmentHeader& header);

}  // namespace encore::disk
