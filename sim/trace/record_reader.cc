#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "filter/hash_number.h"
#include "sim/trace/record_format.h"

namespace encore::sim {
namespace {

// Fields of a record. A place of kNone: the format does not have it.
struct RecordLayout {
  static constexpr std::size_t kNone = SIZE_MAX;
  std::size_t record = 0;
  std::size_t id_at = 0;
  std::size_t id_size = 8;
  bool big_endian = false;
  std::size_t size_at = kNone;
  std::size_t size_size = 4;
  std::size_t seconds_at = kNone;
  std::size_t nanoseconds_at = kNone;
  std::size_t ttl_at = kNone;
};

constexpr RecordLayout kOracleGeneral{.record = 24, .id_at = 4, .size_at = 12, .seconds_at = 0};
constexpr RecordLayout kOther{};

// Versions 3 to 8 differ in the number of features at the end, four bytes each.
Result<RecordLayout> lcs_layout(std::uint64_t version) {
  static constexpr std::array<std::size_t, 6> kFeatures = {0, 1, 2, 4, 8, 16};
  RecordLayout layout{.record = 24, .id_at = 4, .size_at = 12, .seconds_at = 0};
  if (version == 0 || version > 2 + kFeatures.size()) {
    return fail("an lcs trace of version " + std::to_string(version) + ", accepted: 1 to 8");
  }
  if (version == 2) layout.record = 28;
  if (version >= 3) {
    layout.record = 36 + 4 * kFeatures[version - 3];
    layout.size_size = 8;
    layout.ttl_at = 24;
  }
  return layout;
}

Result<RecordLayout> read_head(Input& input, TraceFormat format) {
  switch (format) {
    case TraceFormat::kInt32:
      return RecordLayout{.record = 4, .id_size = 4, .big_endian = true};
    case TraceFormat::kInt64:
      return RecordLayout{.record = 8, .big_endian = true};
    case TraceFormat::kInt32Little:
      return RecordLayout{.record = 4, .id_size = 4};
    case TraceFormat::kInt64Little:
      return RecordLayout{.record = 8};
    case TraceFormat::kOracleGeneral:
      return kOracleGeneral;
    case TraceFormat::kLcs: {
      const auto head = input.next_bytes(kLcsHeader);
      if (!head || head->size() < kLcsHeader || load_little(*head, 0, 8) != kLcsMagic) {
        return head ? fail("no lcs header") : std::unexpected(head.error());
      }
      return lcs_layout(load_little(*head, 8, 8));
    }
    default: {
      const auto head = input.next_bytes(kEncoreMagic.size());
      if (!head || *head != kEncoreMagic) {
        return head ? fail("no header of encore-sim's format") : std::unexpected(head.error());
      }
      return RecordLayout{.record = kEncoreRecord,
                          .size_at = 8,
                          .size_size = 8,
                          .nanoseconds_at = 16,
                          .ttl_at = 24};
    }
  }
}

class RecordReader final : public TraceReader {
 public:
  RecordReader(Input input, TraceFormat format, const RecordLayout& layout,
               const TraceOptions& options)
      : input_(std::move(input)),
        format_(format),
        layout_(layout),
        default_size_(options.default_size_bytes),
        seed_(options.identity_seed) {}

  Result<std::size_t> read(std::span<Request> out) override {
    const std::size_t wanted =
        std::min(out.size(), Input::kLineMax / layout_.record) * layout_.record;
    const auto bytes = input_.next_bytes(wanted);
    if (!bytes) {
      return std::unexpected(bytes.error());
    }
    if (bytes->size() % layout_.record != 0 && !input_.interrupted()) {
      return fail("the trace is cut off within record " +
                  std::to_string(counts_.lines + bytes->size() / layout_.record + 1));
    }
    const std::size_t count = bytes->size() / layout_.record;
    // A format's layout is known to the compiler where it is known to us.
    const bool is_oracle = format_ == TraceFormat::kOracleGeneral;
    const std::uint64_t largest = is_oracle ? decode_all<kOracleGeneral>(*bytes, out.first(count))
                                            : decode_all<kOther>(*bytes, out.first(count));
    if (largest > kSizeMax) {
      return fail_of_size(out.first(count));
    }
    counts_.lines += count;
    counts_.counted += count;
    return count;
  }
  const TraceCounts& counts() const override { return counts_; }
  TraceFormat format() const override { return format_; }

 private:
  // Returns the largest size.
  template <const RecordLayout& kKnown>
  std::uint64_t decode_all(std::string_view bytes, std::span<Request> out) {
    const RecordLayout& layout = kKnown.record == 0 ? layout_ : kKnown;
    counts_.without_size += layout.size_at == RecordLayout::kNone ? out.size() : 0;
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = decode<kKnown>(bytes.substr(i * layout.record, layout.record));
      largest = std::max(largest, out[i].size_bytes);
    }
    return largest;
  }
  Result<std::size_t> fail_of_size(std::span<const Request> decoded) const {
    const auto at = std::ranges::find_if(
        decoded, [](const Request& request) { return request.size_bytes > kSizeMax; });
    const auto number = static_cast<std::uint64_t>(at - decoded.begin());
    return fail("record " + std::to_string(counts_.lines + number + 1) + " has a size of " +
                std::to_string(at->size_bytes) +
                " bytes, accepted: up to a pebibyte (is it damaged, or of another format?)");
  }
  template <const RecordLayout& kKnown>
  Request decode(std::string_view record) const {
    const RecordLayout& layout = kKnown.record == 0 ? layout_ : kKnown;
    const std::uint64_t id = layout.big_endian ? load_big(record, layout.id_at, layout.id_size)
                                               : load_little(record, layout.id_at, layout.id_size);
    Request request{.key = filter::identify_number(seed_, id), .size_bytes = default_size_};
    if (layout.size_at != RecordLayout::kNone) {
      request.size_bytes = load_little(record, layout.size_at, layout.size_size);
    }
    if (layout.seconds_at != RecordLayout::kNone) {
      request.time_ns =
          static_cast<std::int64_t>(load_little(record, layout.seconds_at, 4)) * 1'000'000'000;
    }
    if (layout.nanoseconds_at != RecordLayout::kNone) {
      request.time_ns = static_cast<std::int64_t>(load_little(record, layout.nanoseconds_at, 8));
    }
    if (layout.ttl_at != RecordLayout::kNone) {
      const auto ttl = static_cast<std::uint32_t>(load_little(record, layout.ttl_at, 4));
      // libCacheSim's objects with a time to live of 0 do not expire.
      if (ttl != 0 || format_ != TraceFormat::kLcs) request.ttl_seconds = ttl;
    }
    return request;
  }

  Input input_;
  TraceFormat format_;
  RecordLayout layout_;
  std::uint64_t default_size_;
  filter::Seed seed_;
  TraceCounts counts_;
};

}  // namespace

filter::Hash128 hash_of_id(std::uint64_t id, const filter::Seed& seed) {
  return filter::identify_number(seed, id);
}

Result<std::unique_ptr<TraceReader>> make_record_reader(Input input, TraceFormat format,
                                                        const TraceOptions& options) {
  const auto layout = read_head(input, format);
  if (!layout) {
    return std::unexpected(layout.error());
  }
  return std::make_unique<RecordReader>(std::move(input), format, *layout, options);
}

}  // namespace encore::sim
