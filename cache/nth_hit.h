// Nth-hit admission: an object is stored when it is asked for the N-th time, the rule of nginx's
// proxy_cache_min_uses on the rotating pair of second-hit (Maggs, Sitaraman 2015). A key has N - 1
// aliases; each request inserts the first one that is not yet in the filter, and where all are
// there it is the N-th. The first alias is the key itself, so N = 2 is second-hit.
//
// Each request before the N-th is one insertion, against which the filter's capacity counts. An
// object that is asked for once slips in only if all N - 1 aliases are false positives.
#pragma once

#include <cstdint>
#include <string>

#include "cache/candidate.h"
#include "cache/request_history.h"
#include "filter/alias.h"
#include "filter/rotating_bloom_filter.h"

namespace encore::cache {

class NthHit {
 public:
  NthHit(filter::RotatingBloomFilter filter, std::uint32_t min_requests)
      : filter_(std::move(filter)), min_requests_(min_requests) {}

  bool would_admit(const Candidate& candidate) const {
    return would_admit(filter_, candidate, min_requests_);
  }
  bool admit(const Candidate& candidate) { return admit(filter_, candidate, min_requests_); }
  // The rule itself, on any filter.
  static bool would_admit(const filter::RotatingBloomFilter& filter, const Candidate& candidate,
                          std::uint32_t min_requests) {
    for (std::uint32_t i = 1; i < min_requests; ++i) {
      const Alias alias(candidate.key, i);
      if (!filter.test(alias.key())) {
        return false;
      }
    }
    return true;
  }
  // How many of the requests before the one that stores it are remembered. Pure.
  static RequestHistory recall(const filter::RotatingBloomFilter& filter, const Key& key,
                               std::uint32_t min_requests) {
    RequestHistory recalled{.by = RequestHistory::By::kFilter, .stored_at = min_requests};
    while (recalled.requests + 1 < min_requests) {
      const Alias alias(key, recalled.requests + 1);
      const filter::Seen seen = filter.find(alias.key());
      if (seen == filter::Seen::kNew) {
        break;
      }
      recalled.seen = seen;
      ++recalled.requests;
    }
    return recalled;
  }
  static bool admit(filter::RotatingBloomFilter& filter, const Candidate& candidate,
                    std::uint32_t min_requests) {
    for (std::uint32_t i = 1; i < min_requests; ++i) {
      const Alias alias(candidate.key, i);
      if (filter.test_and_set(alias.key(), candidate.now) == filter::Seen::kNew) {
        return false;
      }
    }
    return true;
  }
  void set_min_requests(std::uint32_t min_requests) { min_requests_ = min_requests; }

  filter::RotatingBloomFilter& filter() { return filter_; }
  const filter::RotatingBloomFilter& filter() const { return filter_; }

 private:
  // The key under another name (filter/alias.h). Its text is there only where the key's is: the
  // filters that hash it need it.
  class Alias {
   public:
    Alias(const Key& key, std::uint32_t number) : hash_(filter::alias_hash(key.hash, number)) {
      if (number == 1) {
        bytes_ = key.bytes;
      } else if (!key.bytes.empty()) {
        text_.reserve(key.bytes.size() + 2);
        text_ = key.bytes;
        text_ += filter::kAliasMark;
        text_ += static_cast<char>(number);
        bytes_ = text_;
      }
    }
    Alias(const Alias&) = delete;
    Alias& operator=(const Alias&) = delete;
    Key key() const { return {hash_, bytes_}; }

   private:
    filter::Hash128 hash_;
    std::string text_;
    std::string_view bytes_;
  };

  filter::RotatingBloomFilter filter_;
  std::uint32_t min_requests_;
};

}  // namespace encore::cache
