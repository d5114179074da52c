#include "proxy/fleet/publications.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

namespace encore::fleet {
namespace {

// Overhead of a text and of a list's element, about.
constexpr std::size_t kFieldBytes = 40;

std::optional<std::size_t> take_number(std::string_view& text) {
  const std::size_t end = text.find(' ');
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t number = 0;
  const auto [parsed, status] = std::from_chars(text.data(), text.data() + end, number);
  if (status != std::errc{} || parsed != text.data() + end) return std::nullopt;
  text.remove_prefix(end + 1);
  return number;
}

std::optional<Fields> take_fields(std::string_view& text) {
  const auto count = take_number(text);
  if (!count || *count > 2 * kEntryFieldsMax) return std::nullopt;
  Fields fields;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto bytes = take_number(text);
    if (!bytes || *bytes > text.size()) return std::nullopt;
    fields.emplace_back(text.substr(0, *bytes));
    text.remove_prefix(*bytes);
  }
  if (!text.starts_with("\n")) return std::nullopt;
  text.remove_prefix(1);
  return fields;
}

}  // namespace

std::size_t Publication::bytes() const {
  std::size_t sum = 0;
  for (const std::string& each : fields) sum += each.size() + kFieldBytes;
  return sum;
}

bool Publications::add(Publication publication) {
  const std::size_t bytes = publication.bytes();
  if (waiting_.size() >= limits_.count || bytes_ + bytes > limits_.bytes) return false;
  bytes_ += bytes;
  waiting_.push_back(std::move(publication));
  return true;
}

void Publications::add_beyond_limits(Publication publication) {
  bytes_ += publication.bytes();
  waiting_.push_back(std::move(publication));
}

bool Publications::are_soft() const { return std::ranges::all_of(waiting_, &Publication::is_soft); }

bool Publications::has_unkept() const {
  return !std::ranges::all_of(waiting_, &Publication::is_kept);
}

void Publications::replace_all(Publication publication) {
  bytes_ = publication.bytes();
  waiting_.clear();
  waiting_.push_back(std::move(publication));
}

std::vector<Publication> Publications::front(std::size_t count, std::size_t bytes) const {
  std::vector<Publication> some;
  std::size_t sum = 0;
  for (const Publication& each : waiting_) {
    sum += each.bytes();
    if (some.size() >= count || (sum > bytes && !some.empty())) break;
    some.push_back(each);
  }
  return some;
}

void Publications::published(const StreamId& id) {
  Publication first = std::move(waiting_.front());
  waiting_.pop_front();
  bytes_ -= first.bytes();
  recent_bytes_ += first.bytes();
  recent_.push_back({id, std::move(first)});
  while (recent_.size() > limits_.recent || recent_bytes_ > limits_.bytes) {
    recent_bytes_ -= recent_.front().publication.bytes();
    recent_.pop_front();
    has_forgotten_ = true;
  }
}

bool Publications::republish_recent() {
  while (!recent_.empty()) {
    bytes_ += recent_.back().publication.bytes();
    waiting_.push_front(std::move(recent_.back().publication));
    waiting_.front().is_kept = false;
    recent_.pop_back();
  }
  recent_bytes_ = 0;
  return !std::exchange(has_forgotten_, false);
}

std::string frame(const Publication& publication) {
  std::string text = std::to_string(publication.fields.size()) + " ";
  for (const std::string& each : publication.fields) {
    text += std::to_string(each.size()) + " " + each;
  }
  return text + "\n";
}

std::vector<Publication> read_frames(std::string_view bytes) {
  std::vector<Publication> all;
  while (auto fields = take_fields(bytes)) {
    const auto entry = decode(*fields);
    if (!entry) continue;
    all.push_back({.fields = std::move(*fields), .is_kept = true, .is_soft = entry->order.soft});
  }
  return all;
}

}  // namespace encore::fleet
