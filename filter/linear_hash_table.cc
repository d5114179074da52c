#include "filter/linear_hash_table.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace encore::filter {

LinearHashTable::LinearHashTable(const LinearHashOptions& options) : options_(options) {
  ENCORE_CHECK(options.first_buckets != 0 && options.bucket_records != 0 && options.load_max > 0,
               "a linear hash table needs buckets, records in them and a load");
  for (std::uint32_t i = 0; i < options.first_buckets; ++i) {
    append_page(primary_);
  }
}

std::uint64_t LinearHashTable::hash_of(std::string_view key) const {
  return hash_key(HashFamily::kXxh3, options_.seed, key).lo;
}

double LinearHashTable::load() const {
  return static_cast<double>(size_) /
         (static_cast<double>(buckets()) * static_cast<double>(options_.bucket_records));
}

std::uint64_t LinearHashTable::memory_bytes() const {
  const auto of = [](const Pages& pages) {
    return pages.pages.size() * sizeof(Page) + pages.records.size() * sizeof(Record);
  };
  return of(primary_) + of(overflow_) + free_.capacity() * sizeof(std::uint32_t) + chunk_bytes_;
}

LinearHashTable::Record& LinearHashTable::record_at(const Place& place, std::uint32_t i) const {
  return place.pages->records[place.page * options_.bucket_records + i];
}

std::uint64_t LinearHashTable::bucket_of(std::uint64_t hash) const {
  const std::uint64_t bucket = hash % buckets_of_level();
  return bucket < split_ ? hash % (2 * buckets_of_level()) : bucket;
}

void LinearHashTable::append_page(Pages& pages) const {
  pages.pages.emplace_back();
  pages.records.resize(pages.records.size() + options_.bucket_records);
}

bool LinearHashTable::find_in(std::uint64_t bucket, const Record& wanted, Place& last) {
  last = {.pages = &primary_, .page = bucket};
  while (true) {
    ++work_.page_reads;
    const Page& page = page_at(last);
    for (std::uint32_t i = 0; i < page.count; ++i) {
      const Record& record = record_at(last, i);
      if (record.hash != wanted.hash) {
        continue;
      }
      ++work_.key_comparisons;
      if (record.key == wanted.key) {
        return true;
      }
    }
    if (page.next == kNoPage) {
      return false;
    }
    last = {.pages = &overflow_, .page = page.next};
  }
}

bool LinearHashTable::find(std::string_view key) {
  const Record wanted{.hash = hash_of(key), .key = key};
  Place last;
  return find_in(bucket_of(wanted.hash), wanted, last);
}

std::optional<std::string_view> LinearHashTable::add(std::string_view key) {
  Record record{.hash = hash_of(key), .key = key};
  Place last;
  if (find_in(bucket_of(record.hash), record, last)) {
    return std::nullopt;
  }
  record.key = keep(key);
  put(last, record);
  ++size_;
  while (load() > options_.load_max) {
    split();
  }
  return record.key;
}

void LinearHashTable::put(Place last, const Record& record) {
  if (page_at(last).count == options_.bucket_records) {
    std::uint32_t page = 0;
    if (free_.empty()) {
      page = static_cast<std::uint32_t>(overflow_.pages.size());
      append_page(overflow_);
    } else {
      page = free_.back();
      free_.pop_back();
    }
    page_at(last).next = page;
    last = {.pages = &overflow_, .page = page};
  }
  record_at(last, page_at(last).count++) = record;
}

void LinearHashTable::put_in_bucket(std::uint64_t bucket, const Record& record) {
  Place last{.pages = &primary_, .page = bucket};
  while (page_at(last).next != kNoPage) {
    last = {.pages = &overflow_, .page = page_at(last).next};
  }
  put(last, record);
}

std::vector<LinearHashTable::Record> LinearHashTable::take_all(std::uint64_t bucket) {
  std::vector<Record> records;
  Place place{.pages = &primary_, .page = bucket};
  while (true) {
    Page& page = page_at(place);
    for (std::uint32_t i = 0; i < page.count; ++i) {
      records.push_back(record_at(place, i));
    }
    const std::uint32_t next = page.next;
    if (place.pages == &overflow_) {
      free_.push_back(static_cast<std::uint32_t>(place.page));
    }
    page = {};
    if (next == kNoPage) {
      return records;
    }
    place = {.pages = &overflow_, .page = next};
  }
}

void LinearHashTable::split() {
  const std::uint64_t from = split_;
  const std::uint64_t to = buckets();
  const std::vector<Record> records = take_all(from);
  append_page(primary_);
  if (++split_ == buckets_of_level()) {
    ++level_;
    split_ = 0;
  }
  ++work_.splits;
  for (const Record& record : records) {
    const std::uint64_t bucket = bucket_of(record.hash);
    work_.keys_moved += bucket == to ? 1U : 0U;
    put_in_bucket(bucket, record);
  }
}

std::string_view LinearHashTable::keep(std::string_view key) {
  constexpr std::size_t kChunkBytes = std::size_t{16} << 10U;
  if (key.empty()) {
    return {};
  }
  if (key.size() > chunk_left_) {
    chunk_left_ = std::max(kChunkBytes, key.size());
    chunk_bytes_ += chunk_left_;
    chunks_.push_back(std::make_unique<char[]>(chunk_left_));
    chunk_at_ = chunks_.back().get();
  }
  std::memcpy(chunk_at_, key.data(), key.size());
  const std::string_view kept(chunk_at_, key.size());
  chunk_at_ += key.size();
  chunk_left_ -= key.size();
  return kept;
}

bool LinearHashTable::is_sound() const {
  std::uint64_t keys = 0;
  std::uint64_t chained = 0;
  for (std::uint64_t bucket = 0; bucket < buckets(); ++bucket) {
    const Pages* pages = &primary_;
    std::uint64_t at = bucket;
    while (true) {
      const Page& page = pages->pages[at];
      for (std::uint32_t i = 0; i < page.count; ++i) {
        const Record& record = pages->records[at * options_.bucket_records + i];
        if (record.hash != hash_of(record.key) || bucket_of(record.hash) != bucket) {
          return false;
        }
      }
      keys += page.count;
      if (page.next == kNoPage) {
        break;
      }
      if (page.count != options_.bucket_records) {
        return false;
      }
      ++chained;
      pages = &overflow_;
      at = page.next;
    }
  }
  return keys == size_ && chained == overflow_pages() && buckets() == buckets_of_level() + split_ &&
         split_ < buckets_of_level();
}

}  // namespace encore::filter
