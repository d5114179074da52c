#include "proxy/observe/request_tap.h"

#include <algorithm>
#include <utility>

namespace encore::server {

void RequestTap::add(std::string line) {
  if (line.ends_with('\n')) line.pop_back();
  const std::size_t bytes = line.size() + kRecordBytes;
  const MutexLock lock(mutex_);
  ++next_;
  bytes_ += bytes;
  lines_.push_back(std::move(line));
  while (bytes_ > kBytesMax) {
    bytes_ -= lines_.front().size() + kRecordBytes;
    lines_.pop_front();
  }
}

RequestTap::RecordBatch RequestTap::take(std::uint64_t from, std::size_t most) const {
  const MutexLock lock(mutex_);
  const std::uint64_t first = next_ - lines_.size();
  from = std::min(from, next_);
  RecordBatch taken;
  taken.dropped = from < first ? first - from : 0;
  const std::uint64_t begin = std::max(from, first);
  const std::uint64_t end = std::min<std::uint64_t>(next_, begin + most);
  for (std::uint64_t number = begin; number < end; ++number) {
    taken.lines.push_back(lines_[number - first]);
  }
  taken.next = end;
  return taken;
}

std::uint64_t RequestTap::next() const {
  const MutexLock lock(mutex_);
  return next_;
}

}  // namespace encore::server
