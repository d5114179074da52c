#include "cache/journal.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "cache/byte_format.h"

namespace encore::cache {
namespace {

constexpr std::string_view kMagic = "ENCJRNL5";
// From before there was probation; else of the same kind.
constexpr std::string_view kMagicWithoutProbation = "ENCJRNL4";
// Before there were parts of bodies: no event, flag or record of theirs.
constexpr std::string_view kMagicWithoutParts = "ENCJRNL3";
// Before there were disks: no field of theirs, and two bytes for the map of fields.
constexpr std::string_view kMagicWithoutDisks = "ENCJRNL2";
constexpr std::uint64_t kHeadMax = 4096;
// A key's text is at most some ten KiB; the sequences of the most segments that a disk has are 10
// MiB.
constexpr std::uint64_t kTextMax = 1U << 24U;

bool takes_identity(const AdmissionOptions& admission, const filter::Seed& identity) {
  return !has_filter(admission.policy) ||
         (admission.filter.hash == filter::HashFamily::kXxh3 && admission.filter.seed == identity);
}

void write_reload(ByteWriter& writer, const ReloadOptions& options, const filter::Seed& identity) {
  const AdmissionOptions& admission = options.admission;
  for (const std::uint64_t value :
       {options.capacity_bytes, options.max_object_bytes, std::uint64_t{options.max_object_share},
        std::uint64_t{options.variants_max}, static_cast<std::uint64_t>(options.eviction),
        static_cast<std::uint64_t>(admission.policy),
        static_cast<std::uint64_t>(admission.filter.layout),
        static_cast<std::uint64_t>(admission.filter.hash), admission.filter.bits,
        std::uint64_t{admission.filter.hashes}, admission.filter.capacity,
        std::uint64_t{admission.generations}, std::uint64_t{admission.refresh},
        static_cast<std::uint64_t>(admission.rotate_after.count()),
        std::uint64_t{admission.shadow_one_in}, std::uint64_t{admission.min_requests},
        std::bit_cast<std::uint64_t>(admission.probability), admission.size_threshold_bytes,
        std::uint64_t{admission.filter.seed == identity}}) {
    writer.number(value);
  }
  // Journals from before it was there know no such policy.
  if (admission.policy == AdmissionPolicy::kProbation) {
    writer.number(admission.fill ? 1 : 0);
    writer.number(static_cast<std::uint64_t>(admission.wait_max.count()));
  }
}

// An enumerator or a number below a limit; anything else is an error of the reader.
template <typename T, typename Source>
T below(ByteReader<Source>& reader, std::uint64_t limit) {
  const std::uint64_t value = reader.number();
  if (value >= limit) {
    reader.fail();
    return T{};
  }
  return static_cast<T>(value);
}

template <typename Source>
ReloadOptions read_reload(ByteReader<Source>& reader, const filter::Seed& identity) {
  constexpr std::uint64_t kTwoTo32 = std::uint64_t{1} << 32;
  ReloadOptions options;
  AdmissionOptions& admission = options.admission;
  options.capacity_bytes = reader.number();
  options.max_object_bytes = reader.number();
  options.max_object_share = below<std::uint32_t>(reader, kTwoTo32);
  options.variants_max = below<std::uint32_t>(reader, kTwoTo32);
  options.eviction = below<EvictionPolicy>(reader, kEvictionPolicyCount);
  admission.policy = below<AdmissionPolicy>(reader, kAdmissionPolicyCount);
  admission.filter.layout =
      below<filter::Layout>(reader, std::uint64_t{1} + static_cast<int>(filter::Layout::kSplit));
  admission.filter.hash = below<filter::HashFamily>(
      reader, std::uint64_t{1} + static_cast<int>(filter::HashFamily::kSha512));
  admission.filter.bits = reader.number();
  admission.filter.hashes = below<std::uint32_t>(reader, kTwoTo32);
  admission.filter.capacity = reader.number();
  admission.generations = below<std::uint32_t>(reader, kTwoTo32);
  admission.refresh = below<bool>(reader, 2);
  admission.rotate_after = Nanoseconds(static_cast<std::int64_t>(reader.number()));
  admission.shadow_one_in = below<std::uint32_t>(reader, kTwoTo32);
  admission.min_requests = below<std::uint32_t>(reader, kTwoTo32);
  admission.probability = std::bit_cast<double>(reader.number());
  admission.size_threshold_bytes = reader.number();
  admission.filter.seed = identity;
  if (reader.number() != 1) {
    reader.fail();
  }
  if (admission.policy == AdmissionPolicy::kProbation) {
    admission.fill = below<bool>(reader, 2);
    admission.wait_max = Nanoseconds(static_cast<std::int64_t>(reader.number()));
  }
  return options;
}

void write_disks(ByteWriter& writer, const KernelOptions& options) {
  writer.number(options.disk_rules.life_seconds_min);
  writer.number(options.disk_rules.write_rate_max);
  writer.number(options.disk_rules.reinsert_percent);
  writer.number(options.disks.size());
  for (const DiskOptions& disk : options.disks) {
    writer.number(disk.segments);
    writer.number(disk.segment_bytes);
  }
}

template <typename Source>
void read_disks(ByteReader<Source>& reader, KernelOptions& options) {
  constexpr std::uint64_t kTwoTo32 = std::uint64_t{1} << 32;
  options.disk_rules.life_seconds_min = below<std::uint32_t>(reader, kTwoTo32);
  options.disk_rules.write_rate_max = reader.number();
  options.disk_rules.reinsert_percent = below<std::uint32_t>(reader, kTwoTo32);
  const auto disks = below<std::uint32_t>(reader, kDisksMax + 1);
  for (std::uint32_t i = 0; i < disks; ++i) {
    DiskOptions disk;
    disk.segments = below<std::uint32_t>(reader, kTwoTo32);
    disk.segment_bytes = reader.number();
    options.disks.push_back(disk);
  }
}

std::string encode_head(const JournalHead& head) {
  std::string body;
  ByteWriter writer(body);
  write_reload(writer, reload_options(head.options), head.options.identity_seed);
  writer.number(head.options.shards);
  writer.number(head.options.entry_overhead_bytes);
  writer.number(head.identity_filter ? 1 : 0);
  writer.number(ticks(head.started));
  writer.text(head.seed_fingerprint);
  write_disks(writer, head.options);
  std::string out(kMagic);
  ByteWriter(out).fixed(body.size(), 4);
  return out + body;
}

Result<JournalHead> decode_head(std::string_view body, bool has_disks) {
  ByteView view(body);
  ByteReader reader(view);
  const ReloadOptions options = read_reload(reader, {});
  JournalHead head;
  head.options = {.capacity_bytes = options.capacity_bytes,
                  .max_object_bytes = options.max_object_bytes,
                  .max_object_share = options.max_object_share,
                  .variants_max = options.variants_max,
                  .eviction = options.eviction,
                  .admission = options.admission};
  head.options.shards = below<std::uint32_t>(reader, kShardsMax + 1);
  head.options.entry_overhead_bytes = below<std::uint32_t>(reader, kHeadMax);
  head.identity_filter = below<bool>(reader, 2);
  head.started = time_of(reader.number());
  head.seed_fingerprint = reader.text(kHeadMax);
  if (has_disks) {
    read_disks(reader, head.options);
  }
  if (!reader.ok() || !view.rest().empty()) {
    return fail("a journal whose head is damaged, or of a filter with a seed of its own");
  }
  if (auto accepted = check_options(head.options); !accepted) {
    return fail("a journal with impossible options: " + accepted.error().message);
  }
  return head;
}

// Which fields a record has, one bit each.
enum Field : std::uint32_t {
  kOutcome,
  kAnyResident,
  kShard,
  kNow,
  kKey,
  kVariant,
  kCharge,
  kReserved,
  kRequests,
  kFresh,
  kKeep,
  kRemoved,
  kFreed,
  kDigest,
  kText,  // the last one without disks
  kDiskFlags,
  kDiskOutcome,
  kNames,
  kPlace,
  kTurn,
  kVersion,
  kDiskBytes,
  kDiskEntries,
};
constexpr int kFieldBytes = 3;
constexpr int kFieldBytesWithoutDisks = 2;

std::uint32_t fields_of(const Event& event, MonotonicTime last_now) {
  const auto bit = [](Field field, bool is_there) { return (is_there ? 1U : 0U) << field; };
  return bit(kOutcome, event.outcome != 0) | bit(kAnyResident, event.any_resident) |
         bit(kShard, event.shard != 0) | bit(kNow, event.now != last_now) |
         bit(kKey, event.key != filter::Hash128{}) | bit(kVariant, event.variant != 0) |
         bit(kCharge, event.charge_bytes != 0) | bit(kReserved, event.reserved_bytes != 0) |
         bit(kRequests, event.requests != 0) | bit(kFresh, ticks(event.fresh_until) != 0) |
         bit(kKeep, ticks(event.keep_until) != 0) | bit(kRemoved, event.removed != 0) |
         bit(kFreed, event.freed_bytes != 0) | bit(kDigest, event.removed_digest != 0) |
         bit(kText, !event.text.empty()) | bit(kDiskFlags, event.disk_flags != 0) |
         bit(kDiskOutcome, event.disk_outcome != 0) | bit(kNames, event.names != 0) |
         bit(kPlace, event.place != DiskPlace{}) | bit(kTurn, event.turn != 0) |
         bit(kVersion, event.version != 0) | bit(kDiskBytes, event.disk_bytes != 0) |
         bit(kDiskEntries, event.disk_entries != 0);
}

void encode_event(const Event& event, MonotonicTime last_now, std::string& out) {
  ByteWriter writer(out);
  const std::uint32_t fields = fields_of(event, last_now);
  const auto has = [&](Field field) { return (fields >> field & 1U) != 0; };
  writer.fixed(static_cast<std::uint64_t>(event.kind), 1);
  writer.fixed(fields, kFieldBytes);
  if (has(kOutcome)) writer.fixed(event.outcome, 1);
  if (has(kShard)) writer.number(event.shard);
  if (has(kNow)) writer.difference(ticks(event.now), ticks(last_now));
  if (has(kKey)) {
    writer.fixed(event.key.lo, 8);
    writer.fixed(event.key.hi, 8);
  }
  if (has(kVariant)) writer.fixed(event.variant, 8);
  if (has(kCharge)) writer.number(event.charge_bytes);
  if (has(kReserved)) writer.number(event.reserved_bytes);
  if (has(kRequests)) writer.number(event.requests);
  if (has(kFresh)) writer.difference(ticks(event.fresh_until), ticks(event.now));
  if (has(kKeep)) writer.difference(ticks(event.keep_until), ticks(event.now));
  if (has(kRemoved)) writer.number(event.removed);
  if (has(kFreed)) writer.number(event.freed_bytes);
  if (has(kDigest)) writer.fixed(event.removed_digest, 8);
  if (has(kText)) writer.text(event.text);
  if (has(kDiskFlags)) writer.fixed(event.disk_flags, 1);
  if (has(kDiskOutcome)) writer.fixed(event.disk_outcome, 1);
  if (has(kNames)) writer.fixed(event.names, 2);
  if (has(kPlace)) {
    writer.number(event.place.disk);
    writer.number(event.place.segment);
    writer.number(event.place.unit);
    writer.number(event.place.bytes);
  }
  if (has(kTurn)) writer.number(event.turn);
  if (has(kVersion)) writer.number(event.version);
  if (has(kDiskBytes)) writer.number(event.disk_bytes);
  if (has(kDiskEntries)) writer.number(event.disk_entries);
}

template <typename Source>
void decode_disk(ByteReader<Source>& reader, std::uint64_t fields, Event& event) {
  constexpr std::uint64_t kTwoTo32 = std::uint64_t{1} << 32;
  const auto has = [&](Field field) { return (fields >> field & 1U) != 0; };
  if (has(kDiskFlags)) event.disk_flags = static_cast<std::uint8_t>(reader.byte());
  if (has(kDiskOutcome)) event.disk_outcome = static_cast<std::uint8_t>(reader.byte());
  if (has(kNames)) event.names = static_cast<std::uint16_t>(reader.fixed(2));
  if (has(kPlace)) {
    event.place.disk = below<std::uint16_t>(reader, kDisksMax);
    event.place.segment = below<std::uint32_t>(reader, kSegmentsMax);
    event.place.unit = below<std::uint32_t>(reader, kSegmentBytesMax / kDiskUnit);
    event.place.bytes = reader.number();
  }
  if (has(kTurn)) event.turn = reader.number();
  if (has(kVersion)) event.version = reader.number();
  if (has(kDiskBytes)) event.disk_bytes = reader.number();
  if (has(kDiskEntries)) event.disk_entries = below<std::uint32_t>(reader, kTwoTo32);
  if (event.disk_outcome >= kDiskOutcomeCount || event.names >= kDiskNamesMax) {
    reader.fail();
  }
}

struct Decoding {
  bool has_disks = true;
  MonotonicTime last_now{};
};

template <typename Source>
bool decode_event(ByteReader<Source>& reader, const Decoding& decoding, Event& event,
                  std::string& text) {
  constexpr std::uint64_t kTwoTo32 = std::uint64_t{1} << 32;
  event = {};
  event.kind = static_cast<EventKind>(reader.byte());
  const std::uint64_t fields =
      reader.fixed(decoding.has_disks ? kFieldBytes : kFieldBytesWithoutDisks);
  const int fields_max = decoding.has_disks ? kDiskEntries : kText;
  const MonotonicTime last_now = decoding.last_now;
  if (static_cast<std::size_t>(event.kind) >= kEventKindCount || fields >> (fields_max + 1) != 0) {
    reader.fail();
  }
  const auto has = [&](Field field) { return (fields >> field & 1U) != 0; };
  event.any_resident = has(kAnyResident);
  if (has(kOutcome)) event.outcome = static_cast<std::uint8_t>(reader.byte());
  if (has(kShard)) event.shard = below<std::uint32_t>(reader, kShardsMax);
  event.now = has(kNow) ? time_of(reader.difference(ticks(last_now))) : last_now;
  if (has(kKey)) {
    event.key.lo = reader.fixed(8);
    event.key.hi = reader.fixed(8);
  }
  if (has(kVariant)) event.variant = reader.fixed(8);
  if (has(kCharge)) event.charge_bytes = reader.number();
  if (has(kReserved)) event.reserved_bytes = reader.number();
  if (has(kRequests)) event.requests = below<std::uint32_t>(reader, kTwoTo32);
  if (has(kFresh)) event.fresh_until = time_of(reader.difference(ticks(event.now)));
  if (has(kKeep)) event.keep_until = time_of(reader.difference(ticks(event.now)));
  if (has(kRemoved)) event.removed = below<std::uint32_t>(reader, kTwoTo32);
  if (has(kFreed)) event.freed_bytes = reader.number();
  if (has(kDigest)) event.removed_digest = reader.fixed(8);
  text = has(kText) ? reader.text(kTextMax) : std::string();
  event.text = text;
  decode_disk(reader, fields, event);
  return reader.ok();
}

struct StreamSource {
  std::streambuf* buffer = nullptr;
  int next() {
    const auto value = buffer->sbumpc();
    return value == std::streambuf::traits_type::eof() ? -1 : value;
  }
};

}  // namespace

JournalHead journal_head(const KernelOptions& options, MonotonicTime now) {
  return {.options = options,
          .identity_filter = takes_identity(options.admission, options.identity_seed),
          .seed_fingerprint = filter::fingerprint(options.identity_seed),
          .started = now};
}

std::string encode_reload(const ReloadOptions& options, const filter::Seed& identity) {
  std::string out;
  ByteWriter writer(out);
  write_reload(writer, options, identity);
  return out;
}

Result<ReloadOptions> decode_reload(std::string_view bytes, const filter::Seed& identity) {
  ByteView view(bytes);
  ByteReader reader(view);
  const ReloadOptions options = read_reload(reader, identity);
  if (!reader.ok() || !view.rest().empty()) {
    return fail("damaged options of a reload, or a filter with a seed of its own");
  }
  return options;
}

std::string adopted_path(const std::string& journal, std::uint64_t checksum) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string path = journal + ".adopted.";
  for (int shift = 60; shift >= 0; shift -= 4) {
    path += kDigits[checksum >> static_cast<unsigned>(shift) & 0xfU];
  }
  return path;
}

// --- recorder ------------------------------------------------------------------------------------

JournalRecorder::JournalRecorder(const JournalHead& head)
    : head_(head), key_text_(!head.identity_filter), last_now_(head.started) {
  for (std::uint32_t i = 0; i < head.options.shards; ++i) {
    lanes_.push_back(std::make_unique<Lane>());
  }
}

JournalRecorder::~JournalRecorder() = default;

void JournalRecorder::record(const Event& event) {
  Recorded recorded{event, {}};
  recorded.event.text = {};
  if (event.kind == EventKind::kReload) {
    recorded.text = event.text;
    const auto options = decode_reload(event.text, head_.options.identity_seed);
    if (!options || !takes_identity(options->admission, head_.options.identity_seed)) {
      key_text_.store(true, std::memory_order_relaxed);
    }
  } else if (event.kind == EventKind::kAdopt) {
    key_text_.store(true, std::memory_order_relaxed);
  } else if (event.kind > EventKind::kAdopt || key_text_.load(std::memory_order_relaxed)) {
    recorded.text = event.text;
  }
  Lane& lane = *lanes_[event.shard];
  MutexLock lock(lane.mutex);
  lane.events.push_back(std::move(recorded));
}

std::string JournalRecorder::take() {
  for (const auto& lane : lanes_) {
    std::vector<Recorded> events;
    {
      MutexLock lock(lane->mutex);
      events.swap(lane->events);
    }
    std::ranges::move(events, std::back_inserter(waiting_));
  }
  std::ranges::sort(waiting_, {}, [](const Recorded& r) { return r.event.sequence; });
  std::string out = head_taken_ ? std::string() : encode_head(head_);
  head_taken_ = true;
  std::size_t done = 0;
  // Up to the first number that is missing: its event came after its lane was emptied.
  for (; done < waiting_.size() && waiting_[done].event.sequence == next_; ++done, ++next_) {
    Event event = waiting_[done].event;
    event.text = waiting_[done].text;
    encode_event(event, last_now_, out);
    last_now_ = event.now;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
  return out;
}

// --- reader --------------------------------------------------------------------------------------

Result<JournalReader> JournalReader::open(std::istream& stream) {
  StreamSource source{stream.rdbuf()};
  ByteReader reader(source);
  std::string magic;
  for (std::size_t i = 0; reader.ok() && i < kMagic.size(); ++i) {
    magic.push_back(static_cast<char>(reader.byte()));
  }
  const bool has_disks =
      magic == kMagic || magic == kMagicWithoutProbation || magic == kMagicWithoutParts;
  if (!has_disks && magic != kMagicWithoutDisks) {
    return fail("not a decision journal: it does not begin with " + std::string(kMagic) + ", " +
                std::string(kMagicWithoutProbation) + ", " + std::string(kMagicWithoutParts) +
                " or " + std::string(kMagicWithoutDisks));
  }
  const std::uint64_t size = reader.fixed(4);
  std::string body;
  for (std::uint64_t i = 0; reader.ok() && i < size && size <= kHeadMax; ++i) {
    body.push_back(static_cast<char>(reader.byte()));
  }
  if (!reader.ok() || body.size() != size) {
    return fail("a decision journal that ends within its head");
  }
  auto head = decode_head(body, has_disks);
  if (!head) {
    return std::unexpected(head.error());
  }
  JournalReader journal(stream);
  journal.has_disks_ = has_disks;
  journal.head_ = std::move(*head);
  journal.last_now_ = journal.head_.started;
  return journal;
}

Result<JournalReader::Next> JournalReader::next(Event& event) {
  if (stream_->rdbuf()->sgetc() == std::streambuf::traits_type::eof()) {
    return Next::kEnd;
  }
  StreamSource source{stream_->rdbuf()};
  ByteReader reader(source);
  if (!decode_event(reader, {has_disks_, last_now_}, event, text_)) {
    return fail("a decision journal that is damaged or cut off after record " +
                std::to_string(last_sequence_));
  }
  event.sequence = ++last_sequence_;
  last_now_ = event.now;
  return Next::kEvent;
}

}  // namespace encore::cache
