#include "proxy/disk/checksum.h"

// Uses the widest instructions that the processor has, if there is a choice: the sums are the same.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"
#include "filter/hash.h"
#include "proxy/disk/bytes.h"

namespace encore::disk {
namespace {

std::uint64_t seed_of(Salt salt, std::uint64_t offset) { return filter::scrambled(salt ^ offset); }

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

// A body's pieces, taken from the front.
class Pieces {
 public:
  explicit Pieces(std::span<const iovec> parts) : parts_(parts) { settle(); }
  bool empty() const { return parts_.empty(); }
  // At most so many bytes, which lie together. REQUIRES: not empty.
  std::span<const std::byte> take(std::size_t bytes_max) {
    const iovec& part = parts_.front();
    const std::size_t bytes = std::min(bytes_max, part.iov_len - done_);
    const auto* const begin = static_cast<const std::byte*>(part.iov_base) + done_;
    done_ += bytes;
    settle();
    return {begin, bytes};
  }

 private:
  void settle() {
    while (!parts_.empty() && done_ == parts_.front().iov_len) {
      parts_ = parts_.subspan(1);
      done_ = 0;
    }
  }

  std::span<const iovec> parts_;
  std::size_t done_ = 0;
};

// Checksum of a block that lies in several pieces, of which `piece` is the first.
std::uint64_t gathered_checksum(std::uint64_t seed, std::span<const std::byte> piece,
                                Pieces& rest) {
  const std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  ENCORE_CHECK(state != nullptr, "no memory for a checksum");
  XXH3_64bits_reset_withSeed(state.get(), seed);
  std::size_t missing = kBlockBytes;
  for (;;) {
    XXH3_64bits_update(state.get(), piece.data(), piece.size());
    missing -= piece.size();
    if (missing == 0 || rest.empty()) return XXH3_64bits_digest(state.get());
    piece = rest.take(missing);
  }
}

}  // namespace

Salt salt_of(const Uuid& disk, std::uint32_t segment, std::uint64_t sequence) {
  // Bytes of another disk, place or turn fit no sum, even if they were whole there.
  std::array<std::byte, 28> bytes{};
  put(bytes.data(), disk.lo);
  put(bytes.data() + 8, disk.hi);
  put(bytes.data() + 16, sequence);
  put(bytes.data() + 24, segment);
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t checksum(Salt salt, std::uint64_t offset, std::span<const std::byte> bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed_of(salt, offset));
}

void put_block_sums(Salt salt, std::uint64_t offset, std::span<const iovec> body,
                    std::span<std::byte> out) {
  Pieces pieces(body);
  for (std::size_t at = 0; !pieces.empty(); at += kSumBytes, offset += kBlockBytes) {
    ENCORE_CHECK(at + kSumBytes <= out.size(), "a body longer than was said");
    const auto piece = pieces.take(kBlockBytes);
    const bool is_whole = piece.size() == kBlockBytes || pieces.empty();
    put(out.data() + at, is_whole ? checksum(salt, offset, piece)
                                  : gathered_checksum(seed_of(salt, offset), piece, pieces));
  }
}

}  // namespace encore::disk
