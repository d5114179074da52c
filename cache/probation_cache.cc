#include "cache/probation_cache.h"

#include <algorithm>
#include <utility>

namespace encore::cache {
namespace {

// True if it was stale; it is fresh from now on.
bool validated(MonotonicTime& fresh_until, const ProbationRequest& request) {
  if (request.now < fresh_until) {
    return false;
  }
  fresh_until = request.fresh_until;
  return true;
}

}  // namespace

Result<ProbationCache> ProbationCache::create(const ProbationCacheSettings& settings,
                                              MonotonicTime now) {
  auto probation = Probation::create({.memory_bytes = settings.memory_bytes,
                                      .keys = settings.keys,
                                      .rule = settings.rule,
                                      .fill = settings.fill,
                                      .wait_max = settings.wait_max},
                                     now);
  if (!probation) {
    return std::unexpected(probation.error());
  }
  return ProbationCache(
      std::move(*probation),
      {.size_bytes = settings.disk_bytes,
       .segment_bytes = settings.segment_bytes != 0 ? settings.segment_bytes
                                                    : settings.disk_bytes / kProbationSegments,
       .move_share = settings.move_share},
      settings.copies_bytes);
}

DiskLoad ProbationCache::load() const {
  return {.objects = log_.objects(),
          .bytes = log_.live_bytes(),
          .size_bytes = log_.size_bytes(),
          .full_once = log_.has_been_full()};
}

ProbationAnswer ProbationCache::request(const ProbationRequest& request) {
  written_.clear();
  ++counts_.requests;
  counts_.bytes += request.size_bytes;
  ProbationAnswer answer;
  if (!find(request, answer)) {
    answer.verdict = probation_.fetched({.key = request.key,
                                         .size_bytes = request.size_bytes,
                                         .payload = request.payload,
                                         .fresh_until = request.fresh_until},
                                        load(), request.now);
    if (answer.verdict == ProbationVerdict::kAdmitted) {
      write({.key = request.key,
             .size_bytes = std::max<std::uint64_t>(1, request.size_bytes),
             .fresh_until = request.fresh_until},
            WrittenFor::kAdmission, request.payload);
    }
  }
  let_leave(request.now);
  return answer;
}

bool ProbationCache::find(const ProbationRequest& request, ProbationAnswer& answer) {
  if (Waiting* const waiting = probation_.find(request.key); waiting != nullptr) {
    answer.found = ProbationPlace::kMemory;
    answer.was_stale = validated(waiting->fresh_until, request);
    if (request.size_bytes != waiting->size_bytes && request.size_bytes != 0) {
      probation_.resize(*waiting, request.size_bytes);
    }
    ++counts_.memory_hits;
    counts_.memory_hit_bytes += request.size_bytes;
    return true;
  }
  if (LoggedObject* const object = log_.find(request.key); object != nullptr) {
    answer.was_stale = validated(object->fresh_until, request);
    VisitedLog::visit(*object);
    if (copies_.use(request.key)) {
      answer.found = ProbationPlace::kMemory;
      ++counts_.memory_hits;
      counts_.memory_hit_bytes += request.size_bytes;
      return true;
    }
    answer.found = ProbationPlace::kDisk;
    ++counts_.disk_hits;
    counts_.disk_hit_bytes += request.size_bytes;
    if (object->visits >= kCopyVisits) {
      copies_.add(request.key, object->size_bytes);
    }
    return true;
  }
  return false;
}

void ProbationCache::let_leave(MonotonicTime now) {
  while (const auto leaving = probation_.leave(load(), now)) {
    if (leaving->fate != Probation::Fate::kRemembered) {
      const Waiting& entry = leaving->entry;
      write({.key = entry.key, .size_bytes = entry.size_bytes, .fresh_until = entry.fresh_until},
            leaving->fate == Probation::Fate::kFills ? WrittenFor::kFill : WrittenFor::kAdmission,
            entry.payload);
    }
  }
}

void ProbationCache::write(const LoggedObject& object, WrittenFor why, Payload payload) {
  log_.write(object, why);
  written_.push_back({.payload = payload, .size_bytes = object.size_bytes});
}

std::uint64_t ProbationCache::memory_bytes() const {
  return probation_.queue().memory_bytes() + log_.memory_bytes() +
         probation_.keys().statistics(1).memory_bytes;
}

}  // namespace encore::cache
