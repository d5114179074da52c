#include "sim/cli/request_spool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/prefetch.h"

namespace encore::sim {
namespace {

// A request in a spool: a byte that says which fields are as they usually are, the object's number,
// and the other fields, in this order. Its key is the object's.
constexpr unsigned kSameTime = 1;     // time_ns is that of the request before
constexpr unsigned kSameSize = 2;     // size_bytes is that of the request before
constexpr unsigned kObjectsSize = 4;  // object_bytes is size_bytes
constexpr unsigned kWithoutTtl = 8;   // ttl_seconds is kNoTtl
constexpr unsigned kNotResized = 16;  // resized is false; there are no bytes for it
constexpr std::size_t kRequestMax = 1 + 4 + 8 + 8 + 8 + 4;

template <typename T>
void put(T value, std::byte*& out) {
  std::memcpy(out, &value, sizeof value);
  out += sizeof value;
}
template <typename T>
T take(const std::byte*& in) {
  T value{};
  std::memcpy(&value, in, sizeof value);
  in += sizeof value;
  return value;
}

// Both begin a batch with these.
struct Before {
  std::int64_t time_ns = 0;
  std::uint64_t size_bytes = 0;
};

void encode(const ReplayRequest& request, Before& before, std::byte*& out) {
  unsigned usual = 0;
  usual |= request.time_ns == before.time_ns ? kSameTime : 0U;
  usual |= request.size_bytes == before.size_bytes ? kSameSize : 0U;
  usual |= request.object_bytes == request.size_bytes ? kObjectsSize : 0U;
  usual |= request.ttl_seconds == kNoTtl ? kWithoutTtl : 0U;
  usual |= request.resized ? 0U : kNotResized;
  put(static_cast<std::uint8_t>(usual), out);
  put(request.object, out);
  if ((usual & kSameTime) == 0) put(request.time_ns, out);
  if ((usual & kSameSize) == 0) put(request.size_bytes, out);
  if ((usual & kObjectsSize) == 0) put(request.object_bytes, out);
  if ((usual & kWithoutTtl) == 0) put(request.ttl_seconds, out);
  before = {request.time_ns, request.size_bytes};
}

ReplayRequest decode(Before& before, const std::byte*& in) {
  const auto usual = take<std::uint8_t>(in);
  ReplayRequest request;
  request.object = take<std::uint32_t>(in);
  request.time_ns = (usual & kSameTime) != 0 ? before.time_ns : take<std::int64_t>(in);
  request.size_bytes = (usual & kSameSize) != 0 ? before.size_bytes : take<std::uint64_t>(in);
  request.object_bytes = (usual & kObjectsSize) != 0 ? request.size_bytes : take<std::uint64_t>(in);
  request.ttl_seconds = (usual & kWithoutTtl) != 0 ? kNoTtl : take<std::uint32_t>(in);
  request.resized = (usual & kNotResized) == 0;
  before = {request.time_ns, request.size_bytes};
  return request;
}

}  // namespace

Result<RequestSpool> RequestSpool::create() {
  auto file = SpoolFile::create();
  if (!file) {
    return std::unexpected(file.error());
  }
  return RequestSpool(std::move(*file));
}

Result<void> RequestSpool::append(std::span<const ReplayRequest> requests) {
  Before before{last_time_ns_, last_size_bytes_};
  for (const ReplayRequest& request : requests) {
    if (size_ % kBatch == 0) {
      batch_.resize(kBatch * kRequestMax);
      batch_bytes_ = 0;
      before = {};
    }
    std::byte* out = batch_.data() + batch_bytes_;
    encode(request, before, out);
    batch_bytes_ = static_cast<std::size_t>(out - batch_.data());
    if (++size_ % kBatch == 0) {
      const std::uint64_t begin = ends_.empty() ? 0 : ends_.back();
      if (auto written = file_.write_at(begin, std::span(batch_).first(batch_bytes_)); !written) {
        return written;
      }
      ends_.push_back(begin + batch_bytes_);
    }
  }
  last_time_ns_ = before.time_ns;
  last_size_bytes_ = before.size_bytes;
  return {};
}

Result<void> RequestSpool::read_batch(std::uint64_t number, std::vector<std::byte>& bytes,
                                      std::vector<ReplayRequest>& requests) const {
  const std::size_t count = std::min<std::uint64_t>(kBatch, size_ - number * kBatch);
  const std::byte* in = batch_.data();
  if (number < ends_.size()) {
    const std::uint64_t begin = number == 0 ? 0 : ends_[number - 1];
    bytes.resize(ends_[number] - begin);
    if (auto got = file_.read_at(begin, bytes); !got) {
      return got;
    }
    in = bytes.data();
  }
  requests.resize(count);
  Before before;
  for (ReplayRequest& request : requests) {
    request = decode(before, in);
  }
  return {};
}

Result<void> RequestSpool::link_next(std::size_t objects, Monitor& monitor) {
  auto file = SpoolFile::create();
  if (!file) {
    return std::unexpected(file.error());
  }
  std::vector<std::uint64_t> next_of(objects, kNeverAgain);
  std::vector<std::byte> bytes;
  std::vector<ReplayRequest> requests;
  std::vector<std::uint64_t> next;
  monitor.begin("linking", size_);
  for (std::uint64_t number = (size_ + kBatch - 1) / kBatch; number-- != 0;) {
    if (auto got = read_batch(number, bytes, requests); !got) {
      return got;
    }
    const std::uint64_t begin = number * kBatch;
    next.resize(requests.size());
    for (std::size_t i = requests.size(); i-- != 0;) {
      next[i] = std::exchange(next_of[requests[i].object], begin + i);
    }
    if (auto written =
            file->write_at(begin * sizeof(std::uint64_t), std::as_bytes(std::span(next)));
        !written) {
      return written;
    }
    if (!monitor.advance(requests.size())) {
      break;
    }
  }
  next_ = std::move(*file);
  return {};
}

Result<std::span<const ReplayRequest>> SpoolReader::read() {
  requests_.clear();
  if (at_ == spool_.size_) {
    return requests_;
  }
  if (auto got = spool_.read_batch(at_ / RequestSpool::kBatch, bytes_, requests_); !got) {
    return std::unexpected(got.error());
  }
  next_.assign(requests_.size(), kNeverAgain);
  if (spool_.next_) {
    const auto bytes = std::as_writable_bytes(std::span(next_));
    if (auto got = spool_.next_->read_at(at_ * sizeof(std::uint64_t), bytes); !got) {
      return std::unexpected(got.error());
    }
  }
  constexpr std::size_t kAhead = 16;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (i + kAhead < requests_.size()) {
      encore::prefetch(&objects_.key_of(requests_[i + kAhead].object));
    }
    ReplayRequest& request = requests_[i];
    request.key = objects_.key_of(request.object);
    request.next = next_[i];
    request.heaviest = objects_.heaviest_of(request.object);
  }
  at_ += requests_.size();
  return requests_;
}

}  // namespace encore::sim
