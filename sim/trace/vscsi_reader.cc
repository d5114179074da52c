// vSCSI traces, as VMware's tracer and CloudPhysics have them. An object is a sector at which
// requests begin; with --split-blocks it is a block.
#include <algorithm>
#include <utility>

#include "filter/hash_number.h"
#include "sim/trace/line_parser.h"
#include "sim/trace/record_format.h"

namespace encore::sim {
namespace {

constexpr std::uint64_t kSectorBytes = 512;
constexpr std::size_t kLookedAt = 16;

// Two records at least, or one that is all there is.
bool has_version(std::string_view bytes, const VscsiLayout& layout, unsigned version) {
  const std::size_t count = std::min(kLookedAt, bytes.size() / layout.record);
  for (std::size_t i = 0; i < count; ++i) {
    if (static_cast<unsigned char>(bytes[i * layout.record + layout.version_at + 1]) != version) {
      return false;
    }
  }
  return count >= 2 || (count == 1 && bytes.size() == layout.record);
}

class VscsiReader final : public TraceReader {
 public:
  VscsiReader(Input input, const VscsiLayout& layout, const TraceOptions& options)
      : input_(std::move(input)), layout_(layout), options_(options) {}

  Result<std::size_t> read(std::span<Request> out) override {
    std::size_t made = 0;
    while (made < out.size()) {
      if (blocks_.first != blocks_.end) {
        out[made++] = request_for(blocks_.first++, options_.block_bytes);
        continue;
      }
      const auto record = input_.next_bytes(layout_.record);
      if (!record) return std::unexpected(record.error());
      if (record->size() < layout_.record) {
        if (record->empty() || input_.interrupted()) break;
        return fail("the trace is cut off within record " + std::to_string(counts_.lines + 1));
      }
      ++counts_.lines;
      const std::uint64_t length = load_little(*record, layout_.length_at, 4);
      const std::uint64_t sector = load_little(*record, layout_.sector_at, 8);
      time_ns_ = static_cast<std::int64_t>(load_little(*record, layout_.time_at, 8) * 1000);
      if (options_.block_bytes == 0) {
        out[made++] = request_for(sector, length);
      } else if (sector > UINT64_MAX / kSectorBytes ||
                 !split_into_blocks(sector * kSectorBytes, length, options_.block_bytes, blocks_)) {
        return fail("record " + std::to_string(counts_.lines) +
                    " is for more than a million blocks, or beyond 2^64 bytes");
      }
    }
    counts_.counted += made;
    return made;
  }
  const TraceCounts& counts() const override { return counts_; }
  TraceFormat format() const override { return TraceFormat::kVscsi; }

 private:
  Request request_for(std::uint64_t number, std::uint64_t bytes) const {
    return {.key = filter::identify_number(options_.identity_seed, number),
            .time_ns = time_ns_,
            .size_bytes = bytes};
  }

  Input input_;
  VscsiLayout layout_;
  TraceOptions options_;
  TraceCounts counts_;
  std::int64_t time_ns_ = 0;
  BlockRange blocks_;
};

}  // namespace

int vscsi_version(std::string_view bytes) {
  return has_version(bytes, kVscsi2, 2) ? 2 : has_version(bytes, kVscsi1, 1) ? 1 : 0;
}

Result<std::unique_ptr<TraceReader>> make_vscsi_reader(Input input, const TraceOptions& options) {
  const auto head = input.peek(kVscsi2.record * kLookedAt);
  if (!head) return std::unexpected(head.error());
  const int version = vscsi_version(*head);
  if (version == 0) return fail("no vSCSI records of version 1 or 2");
  return std::make_unique<VscsiReader>(std::move(input), version == 1 ? kVscsi1 : kVscsi2, options);
}

}  // namespace encore::sim
