#include "proxy/disk/open.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/units.h"
#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/purge_log.h"

namespace encore::disk {
namespace {

constexpr std::array kCopies = {std::uint64_t{0}, kSecondSuperblock};
// A disk of this generation is being made: there is nothing on it yet.
constexpr std::uint64_t kBeingMade = 0;
// File systems and partition tables have their signatures somewhere in here.
constexpr std::uint64_t kLookedAt = kMiB;
constexpr const char* kRemedy = "; name another path, or empty it with --clear-disk";

struct Look {
  PageKind kind = PageKind::kBlank;
  std::uint32_t version = 0;
  Superblock superblock;
  std::size_t copies = 0;  // that are of this superblock
};

// Whether the beginning is zeros. Errors: the device's.
Result<bool> is_blank(File& file, std::uint64_t size) {
  AlignedBuffer memory(std::min(size / kPageBytes * kPageBytes, kLookedAt));
  const auto bytes = memory.first(memory.size());
  if (auto got = file.read(bytes, 0); !got) return std::unexpected(got.error());
  return std::ranges::all_of(bytes, [](auto byte) { return byte == std::byte{0}; });
}

// Merges two copies: one newer than this program is left alone, then the newest of ours counts.
Look merge(const Look& a, const DecodedSuperblock& b) {
  if (a.kind == PageKind::kNewer) return a;
  if (a.kind == b.kind && a.superblock == b.superblock) {
    return {a.kind, a.version, a.superblock, a.copies + 1};
  }
  const bool is_better =
      b.kind == PageKind::kNewer ||
      (b.kind == PageKind::kOurs &&
       (a.kind != PageKind::kOurs || b.superblock.generation > a.superblock.generation)) ||
      (b.kind == PageKind::kDamaged && a.kind != PageKind::kOurs) ||
      (b.kind == PageKind::kForeign && a.kind == PageKind::kBlank);
  return is_better ? Look{b.kind, b.version, b.superblock, 1} : a;
}

Result<Look> look(File& file) {
  const auto size = file.size();
  if (!size) return std::unexpected(size.error());
  if (*size == 0) return Look{};
  Look seen;
  AlignedBuffer page(kPageBytes);
  std::size_t read = 0;
  std::string error;
  for (const std::uint64_t offset : kCopies) {
    if (offset + kPageBytes > *size) continue;
    const Page bytes(page.first(kPageBytes));
    if (auto got = file.read(bytes, offset); !got) {
      error = got.error().message;
      continue;
    }
    ++read;
    seen = merge(seen, decode_superblock(bytes, offset));
  }
  if (read == 0 && !error.empty()) return fail(error);
  // Half a page is nothing that we made.
  if (read == 0) return Look{PageKind::kForeign, 0, {}, 0};
  // With one copy unread, that the other is blank says nothing.
  if (seen.kind == PageKind::kBlank && !error.empty()) return fail(error);
  if (seen.kind == PageKind::kBlank) {
    const auto blank = is_blank(file, *size);
    if (!blank) return std::unexpected(blank.error());
    if (!*blank) seen.kind = PageKind::kForeign;
  }
  return seen;
}

Result<void> write_superblock(File& file, const Superblock& superblock) {
  AlignedBuffer page(kPageBytes);
  for (const std::uint64_t offset : kCopies) {
    encode(superblock, offset, Page(page.first(kPageBytes)));
    // One after the other: a torn write leaves one of them whole.
    if (auto written = file.write(page.first(kPageBytes), offset); !written) return written;
    if (auto synced = file.sync(); !synced) return synced;
  }
  return {};
}

std::uint64_t wanted_segment_bytes(const OpenOptions& options) {
  return options.segment_bytes != 0 ? options.segment_bytes
                                    : cache::default_segment_bytes(options.disk_bytes);
}

Result<Superblock> make_disk(File& file, const OpenOptions& options) {
  auto made = lay_out(options.disk_bytes, wanted_segment_bytes(options));
  if (!made) return fail("disk " + file.path() + ": " + made.error().message);
  made->uuid = options.uuid;
  made->identity_seed = options.identity_seed;
  made->made_at = options.now;
  made->generation = kBeingMade;
  if (auto room = file.allocate(made->disk_bytes()); !room) return std::unexpected(room.error());
  // The earlier contents are no longer a disk before their purges are overwritten; and a disk that
  // a crash leaves half made is known as such.
  if (auto written = write_superblock(file, *made); !written) {
    return std::unexpected(written.error());
  }
  PurgeLog purges(file, *made);
  if (auto empty = purges.make(); !empty) return std::unexpected(empty.error());
  made->generation = kBeingMade + 1;
  if (auto written = write_superblock(file, *made); !written) {
    return std::unexpected(written.error());
  }
  return *made;
}

Result<void> check_kind(const Look& seen, const std::string& path) {
  switch (seen.kind) {
    case PageKind::kNewer:
      return fail("disk " + path + " was made by a newer encore (format " +
                  std::to_string(seen.version) + ", accepted: up to " +
                  std::to_string(kFormatVersion) + ")" + kRemedy);
    case PageKind::kDamaged:
      return fail("disk " + path + " is damaged: neither of its two superblocks is whole" +
                  kRemedy);
    case PageKind::kForeign:
      return fail("disk " + path + " holds something that encore has not written" + kRemedy);
    case PageKind::kOurs:
    case PageKind::kBlank:
      break;
  }
  return {};
}

// Erases segments from a time when the disk was as large, which must not return.
Result<void> forget_segments(File& file, const Superblock& superblock, std::uint32_t begin,
                             std::uint32_t end) {
  AlignedBuffer page(kPageBytes);
  std::ranges::fill(page.first(kPageBytes), std::byte{0});
  for (std::uint32_t segment = begin; segment < end; ++segment) {
    const std::uint64_t at = superblock.segment_offset(segment);
    if (auto written = file.write(page.first(kPageBytes), at); !written) return written;
  }
  return file.sync();
}

}  // namespace

Result<Superblock> open_disk(File& file, const OpenOptions& options) {
  if (options.clear) return make_disk(file, options);
  const auto seen = look(file);
  if (!seen) return std::unexpected(seen.error());
  if (auto ours = check_kind(*seen, file.path()); !ours) return std::unexpected(ours.error());
  const Superblock& superblock = seen->superblock;
  if (seen->kind == PageKind::kBlank || superblock.generation == kBeingMade) {
    return make_disk(file, options);
  }
  if (superblock.identity_seed != options.identity_seed) {
    return fail("disk " + file.path() + " was filled with another seed than " +
                filter::fingerprint(options.identity_seed) + ": " +
                filter::fingerprint(superblock.identity_seed) +
                "; bring back the state directory that belongs to it, or empty it with "
                "--clear-disk");
  }
  // One copy of two was damaged, or is still of the time before.
  if (seen->copies != kCopies.size()) {
    if (auto mended = write_superblock(file, superblock); !mended) {
      return std::unexpected(mended.error());
    }
  }
  const std::uint64_t segments =
      std::min<std::uint64_t>(segments_in(superblock, options.disk_bytes), cache::kSegmentsMax);
  if (segments > superblock.segments) {
    return resize(file, superblock, static_cast<std::uint32_t>(segments));
  }
  if (auto room = file.allocate(superblock.disk_bytes()); !room) {
    return std::unexpected(room.error());
  }
  return superblock;
}

Result<std::optional<Superblock>> find_disk(File& file) {
  const auto seen = look(file);
  if (!seen) return std::unexpected(seen.error());
  if (auto ours = check_kind(*seen, file.path()); !ours) return std::unexpected(ours.error());
  if (seen->kind == PageKind::kBlank || seen->superblock.generation == kBeingMade) {
    return std::nullopt;
  }
  return seen->superblock;
}

Result<Superblock> read_superblock(File& file) {
  const auto found = find_disk(file);
  if (!found) return std::unexpected(found.error());
  if (!*found) return fail("disk " + file.path() + " is empty: no encore has used it yet");
  return **found;
}

Result<Superblock> remember_runs(File& file, const Superblock& superblock, const RunHistory& runs) {
  Superblock later = superblock;
  later.runs = runs;
  ++later.generation;
  if (auto written = write_superblock(file, later); !written) {
    return std::unexpected(written.error());
  }
  return later;
}

Result<void> forget_disk(File& file, Superblock superblock) {
  superblock.generation = kBeingMade;
  return write_superblock(file, superblock);
}

Result<Superblock> resize(File& file, const Superblock& superblock, std::uint32_t segments) {
  // In this order a crash leaves a disk that can be used: new segments are blank before the
  // superblock has them, and old ones are in no superblock when the file is cut.
  Superblock resized = superblock;
  resized.segments = segments;
  ++resized.generation;
  if (segments > superblock.segments) {
    if (auto room = file.allocate(resized.disk_bytes()); !room) {
      return std::unexpected(room.error());
    }
    if (auto forgotten = forget_segments(file, resized, superblock.segments, segments);
        !forgotten) {
      return std::unexpected(forgotten.error());
    }
  }
  if (auto written = write_superblock(file, resized); !written) {
    return std::unexpected(written.error());
  }
  if (auto cut = file.truncate(resized.disk_bytes()); !cut) return std::unexpected(cut.error());
  return resized;
}

}  // namespace encore::disk
