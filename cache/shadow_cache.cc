#include "cache/shadow_cache.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

namespace encore::cache {
namespace {

// A payload is the variant, as far as it has room, and the charge.
constexpr unsigned kChargeBits = 40;
constexpr std::uint64_t kChargeMask = (std::uint64_t{1} << kChargeBits) - 1;
Payload payload_of(const ShadowRequest& request) {
  return request.variant << kChargeBits | request.charge_bytes;
}

class SelectPayload final : public Selector {
 public:
  explicit SelectPayload(Payload wanted) : wanted_(wanted >> kChargeBits) {}
  bool matches(Payload payload) override { return payload >> kChargeBits == wanted_; }

 private:
  Payload wanted_;
};

// A filter with another hash family hashes the key's text: the identity hash stands for it.
Key key_of(const ShadowRequest& request) {
  return {request.key,
          std::string_view(reinterpret_cast<const char*>(&request.key), sizeof request.key)};
}

Stored stored_of(const ShadowRequest& request, MonotonicTime now) {
  return {.variant = request.variant,
          .charge_bytes = request.charge_bytes,
          .fresh_until = now + std::chrono::seconds(request.fresh_seconds),
          .payload = payload_of(request)};
}

// Counts in one unit: requests, or their bytes.
struct Counted {
  std::uint64_t all = 0;
  std::uint64_t requested = 0;
  std::uint64_t missed = 0;
};

ShadowShare share_of(const Counted& counted, std::span<const std::uint64_t> parts_missed,
                     double rate) {
  if (counted.all == 0) {
    return {};
  }
  const auto hits = [&](std::uint64_t missed, double of_rate) {
    return 1 - static_cast<double>(missed) / (of_rate * static_cast<double>(counted.all));
  };
  const double value = std::clamp(hits(counted.missed, rate), 0.0, 1.0);
  if (rate >= 1) {
    return {value, value, value};
  }
  const auto count = static_cast<double>(parts_missed.size());
  double squares = 0;
  for (const std::uint64_t missed : parts_missed) {
    const double off = hits(missed, rate / count) - hits(counted.missed, rate);
    squares += off * off;
  }
  const double spread = kStudent * std::sqrt(squares / (count * (count - 1)) * (1 - rate));
  const double plain = counted.requested == 0 ? value
                                              : 1 - static_cast<double>(counted.missed) /
                                                        static_cast<double>(counted.requested);
  return {value, std::max(0.0, std::min(value, plain) - spread),
          std::min(1.0, std::max(value, plain) + spread)};
}

std::uint64_t whole_of(std::uint64_t sampled, double rate) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(sampled) / rate));
}

std::uint64_t rest_of(std::uint64_t all, std::uint64_t part) { return all - std::min(all, part); }

}  // namespace

ShadowCounts ShadowCounts::operator-(const ShadowCounts& other) const {
  return {.requests = requests - other.requests,
          .hits = hits - other.hits,
          .validations = validations - other.validations,
          .bytes_requested = bytes_requested - other.bytes_requested,
          .bytes_hit = bytes_hit - other.bytes_hit,
          .objects_written = objects_written - other.objects_written,
          .bytes_written = bytes_written - other.bytes_written};
}

ShadowCounts& ShadowCounts::operator+=(const ShadowCounts& other) {
  requests += other.requests;
  hits += other.hits;
  validations += other.validations;
  bytes_requested += other.bytes_requested;
  bytes_hit += other.bytes_hit;
  objects_written += other.objects_written;
  bytes_written += other.bytes_written;
  return *this;
}

Result<std::unique_ptr<ShadowCache>> ShadowCache::create(const KernelOptions& whole,
                                                         const SpatialSample& sample,
                                                         MonotonicTime now) {
  std::unique_ptr<ShadowCache> shadow(new ShadowCache(whole, sample));
  auto kernel = Kernel::create(scaled_kernel(whole, sample.rate()), {}, now);
  if (!kernel) {
    return std::unexpected(kernel.error());
  }
  shadow->kernel_ = std::move(*kernel);
  shadow->now_ = now;
  return shadow;
}

void ShadowCache::feed(const ShadowRequest& asked) {
  // Several workers' requests come in parts, of which the later may be the older.
  now_ = std::max(now_, asked.now);
  ShadowRequest request = asked;
  request.charge_bytes = std::clamp<std::uint64_t>(asked.charge_bytes, 1, kChargeMask / 2);
  ++counts_.requests;
  counts_.bytes_requested += request.sent_bytes;
  const Key key = key_of(request);
  if (look_up(key, request)) {
    ++counts_.hits;
    counts_.bytes_hit += request.sent_bytes;
    return;
  }
  Part& part = parts_[sample_.part_of(request.key)];
  ++part.requests_missed;
  part.bytes_missed += request.sent_bytes;
}

bool ShadowCache::look_up(const Key& key, const ShadowRequest& request) {
  SelectPayload selector(payload_of(request));
  const LookupResult found = kernel_->lookup(key, now_, selector);
  if (found.state == LookupState::kMiss) {
    store(key, request);
    return false;
  }
  const bool fresh = found.state == LookupState::kFresh;
  counts_.validations += fresh ? 0U : 1U;
  if (fresh && (found.payload & kChargeMask) == request.charge_bytes) {
    return true;
  }
  // Validated, or of another size than it was: the kernel is to hold what there is now.
  Stored stored = stored_of(request, now_);
  if (fresh) {
    stored.fresh_until = found.fresh_until;
  }
  const FreshenOutcome outcome = kernel_->freshen(key, stored, now_);
  if (outcome == FreshenOutcome::kTooLarge || outcome == FreshenOutcome::kFull) {
    kernel_->remove(key, request.variant, now_);
  }
  return fresh;
}

void ShadowCache::store(const Key& key, const ShadowRequest& request) {
  if (whole_.max_object_bytes != 0 && request.object_bytes > whole_.max_object_bytes) {
    return;
  }
  const AdmitReason reason =
      kernel_->admit(key,
                     {.variant = request.variant,
                      .requests = 1,
                      .size_bytes = std::max<std::uint64_t>(request.object_bytes, 1),
                      .rule = AdmissionRule::decoded(request.rule)},
                     now_);
  const std::uint64_t reserved = request.charge_bytes + kernel_->charge_of_entry();
  if (!is_stored(reason) || kernel_->reserve(key, reserved, now_) != ReserveOutcome::kReserved) {
    return;
  }
  const CommitOutcome outcome = kernel_->commit(key, stored_of(request, now_), reserved, now_);
  if (outcome == CommitOutcome::kStored || outcome == CommitOutcome::kReplaced) {
    ++counts_.objects_written;
    counts_.bytes_written += request.charge_bytes;
  }
}

ShadowCounts ShadowCache::estimate(const ShadowCounts& all) const {
  const double rate = sample_.rate();
  if (rate >= 1) {
    return counts_;
  }
  return {.requests = all.requests,
          .hits = rest_of(all.requests, whole_of(counts_.requests - counts_.hits, rate)),
          .validations = whole_of(counts_.validations, rate),
          .bytes_requested = all.bytes_requested,
          .bytes_hit = rest_of(all.bytes_requested,
                               whole_of(counts_.bytes_requested - counts_.bytes_hit, rate)),
          .objects_written = whole_of(counts_.objects_written, rate),
          .bytes_written = whole_of(counts_.bytes_written, rate)};
}

ShadowShare ShadowCache::object_hit_ratio(const ShadowCounts& all) const {
  std::array<std::uint64_t, SpatialSample::kParts> missed{};
  std::ranges::transform(parts_, missed.begin(), &Part::requests_missed);
  return share_of({.all = all.requests,
                   .requested = counts_.requests,
                   .missed = counts_.requests - counts_.hits},
                  missed, sample_.rate());
}

ShadowShare ShadowCache::byte_hit_ratio(const ShadowCounts& all) const {
  std::array<std::uint64_t, SpatialSample::kParts> missed{};
  std::ranges::transform(parts_, missed.begin(), &Part::bytes_missed);
  return share_of({.all = all.bytes_requested,
                   .requested = counts_.bytes_requested,
                   .missed = counts_.bytes_requested - counts_.bytes_hit},
                  missed, sample_.rate());
}

std::uint64_t ShadowCache::memory_bytes() const {
  return kernel_->statistics().index_bytes + kernel_->admission_statistics(1).memory_bytes;
}

}  // namespace encore::cache
