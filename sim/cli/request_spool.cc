#include "sim/cli/request_spool.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace encore::sim {
namespace {

// A request on disk; its key is the object's.
struct Record {
  std::int64_t time_ns;
  std::uint64_t size_bytes;
  std::uint64_t object_bytes : 63;
  std::uint64_t resized : 1;
  std::uint32_t object;
  std::uint32_t ttl_seconds;
};
static_assert(sizeof(Record) == 32);
constexpr std::uint64_t kBytesMax = UINT64_MAX >> 1U;

// Half a megabyte of records at a time.
constexpr std::size_t kBatch = 16 * 1024;

}  // namespace

Result<RequestSpool> RequestSpool::create() {
  auto file = SpoolFile::create();
  if (!file) {
    return std::unexpected(file.error());
  }
  return RequestSpool(std::move(*file));
}

Result<void> RequestSpool::append(std::span<const ReplayRequest> requests) {
  std::vector<Record> records;
  records.reserve(std::min(requests.size(), kBatch));
  while (!requests.empty()) {
    const auto part = requests.first(std::min(requests.size(), kBatch));
    records.clear();
    for (const ReplayRequest& request : part) {
      records.push_back({.time_ns = request.time_ns,
                         .size_bytes = request.size_bytes,
                         .object_bytes = std::min(request.object_bytes, kBytesMax) & kBytesMax,
                         .resized = request.resized ? 1U : 0U,
                         .object = request.object,
                         .ttl_seconds = request.ttl_seconds});
    }
    if (auto written = file_.write_at(size_ * sizeof(Record), std::as_bytes(std::span(records)));
        !written) {
      return written;
    }
    size_ += part.size();
    requests = requests.subspan(part.size());
  }
  return {};
}

Result<void> RequestSpool::link_next(std::size_t objects, Monitor& monitor) {
  auto file = SpoolFile::create();
  if (!file) {
    return std::unexpected(file.error());
  }
  std::vector<std::uint64_t> next_of(objects, kNeverAgain);
  std::vector<Record> records(kBatch);
  std::vector<std::uint64_t> next(kBatch);
  monitor.begin("linking", size_);
  for (std::uint64_t end = size_; end != 0;) {
    const std::size_t count = std::min<std::uint64_t>(kBatch, end);
    const std::uint64_t begin = end - count;
    const auto bytes = std::as_writable_bytes(std::span(records).first(count));
    if (auto got = file_.read_at(begin * sizeof(Record), bytes); !got) {
      return got;
    }
    for (std::size_t i = count; i != 0; --i) {
      std::uint64_t& last = next_of[records[i - 1].object];
      next[i - 1] = last;
      last = begin + i - 1;
    }
    if (auto written = file->write_at(begin * sizeof(std::uint64_t),
                                      std::as_bytes(std::span(next).first(count)));
        !written) {
      return written;
    }
    end = begin;
    if (!monitor.advance(count)) {
      break;
    }
  }
  next_ = std::move(*file);
  return {};
}

Result<std::span<const ReplayRequest>> SpoolReader::read() {
  // Small enough to stay in the core's cache.
  constexpr std::uint64_t kRead = 4096;
  const std::size_t count = std::min(kRead, spool_.size_ - at_);
  records_.resize(count * sizeof(Record));
  if (auto got = spool_.file_.read_at(at_ * sizeof(Record), records_); !got) {
    return std::unexpected(got.error());
  }
  if (spool_.next_) {
    next_.resize(count);
    const auto bytes = std::as_writable_bytes(std::span(next_));
    if (auto got = spool_.next_->read_at(at_ * sizeof(std::uint64_t), bytes); !got) {
      return std::unexpected(got.error());
    }
  }
  requests_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    Record record{};
    std::memcpy(&record, records_.data() + i * sizeof record, sizeof record);
    requests_[i] = {.key = objects_.key_of(record.object),
                    .time_ns = record.time_ns,
                    .size_bytes = record.size_bytes,
                    .object_bytes = record.object_bytes,
                    .next = spool_.next_ ? next_[i] : kNeverAgain,
                    .ttl_seconds = record.ttl_seconds,
                    .object = record.object,
                    .resized = record.resized != 0,
                    .heaviest = objects_.heaviest_of(record.object)};
  }
  at_ += count;
  return requests_;
}

}  // namespace encore::sim
