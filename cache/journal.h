// The decision journal: events as bytes.
//
//   "ENCJRNL5"  length of head  head  { record }
//
// The head holds the options of the kernel, the moment it was made, and the fingerprint of its
// seed (never the seed). A record is its kind, a map of the fields that are not zero, and these as
// variable-length integers; sequence and now as differences from the record before. Versions 2,
// from before there were disks, 3, from before there were parts of bodies, and 4, from before there
// was probation, are read as well.
#pragma once

#include <atomic>
#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"
#include "cache/events.h"
#include "cache/options.h"

namespace encore::cache {

struct JournalHead {
  KernelOptions options;  // both seeds in it are zero when it was read
  // The filter takes the identity hash as it is: no key text is needed to replay.
  bool identity_filter = true;
  std::string seed_fingerprint;
  MonotonicTime started{};
};
JournalHead journal_head(const KernelOptions& options, MonotonicTime now);

// Options of a reload as Event::text carries them. Seeds are not in it, only whether the filter's
// is the identity seed.
std::string encode_reload(const ReloadOptions& options, const filter::Seed& identity);
// Errors: not such bytes. A filter with the identity seed gets `identity`.
Result<ReloadOptions> decode_reload(std::string_view bytes, const filter::Seed& identity);

// Returns the path of the file with the memory that an adopt event names, next to the journal. The
// file holds the seed of the cache that the memory came from, so only the journal's owner may read
// it.
std::string adopted_path(const std::string& journal, std::uint64_t checksum);

// Collects what a kernel does, for a writer thread to take. Thread-safe.
class JournalRecorder final : public Observer {
 public:
  // The head must be that of the kernel that is observed.
  explicit JournalRecorder(const JournalHead& head);
  ~JournalRecorder() override;

  void record(const Event& event) override;

  // The bytes to append to the file: the head at the first call, then the records that are
  // complete (all before them are here) in the order of their numbers. One caller at a time.
  std::string take();

 private:
  struct Recorded {
    Event event;
    std::string text;
  };
  struct alignas(64) Lane {
    Mutex mutex;
    std::vector<Recorded> events ENCORE_GUARDED_BY(mutex);
  };

  JournalHead head_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // one a shard
  std::vector<Recorded> waiting_;             // taken, but something before them is missing
  bool head_taken_ = false;
  // Some filter hashes the keys' text itself, or was adopted.
  std::atomic<bool> key_text_{false};
  std::uint64_t next_ = 1;
  MonotonicTime last_now_{};
};

// Reads a journal. Confined to one thread.
class JournalReader {
 public:
  // Errors: not a journal, another version, a head that is damaged. Borrows the stream.
  static Result<JournalReader> open(std::istream& stream);

  const JournalHead& head() const { return head_; }

  enum class Next : std::uint8_t { kEvent, kEnd };
  // `event.text` is valid until the next call. Errors: damaged, or cut off within a record; the
  // message says after which record.
  Result<Next> next(Event& event);

 private:
  explicit JournalReader(std::istream& stream) : stream_(&stream) {}

  std::istream* stream_;
  bool has_disks_ = true;
  JournalHead head_;
  std::string text_;
  std::uint64_t last_sequence_ = 0;
  MonotonicTime last_now_{};
};

}  // namespace encore::cache
