#include "cache/size_model.h"

#include <algorithm>
#include <cmath>

namespace encore::cache {
namespace {

// Below so much of a request an object is forgotten.
constexpr double kForgotten = 0.1;
constexpr double kFade = 0.5;
// e^x beyond this: the object is resident.
constexpr double kExponentMax = 150;
// The time that the counts stand for is 1. Nothing is taken to stay for longer than was watched:
// else a tiny c, by which the popular would get in some day, looks best.
constexpr double kTimeMax = 1;
constexpr std::uint64_t kIdBits = 40;  // bits that remix() leaves free: see filter/hash.h

double resident(double rate_time, double admitted) {
  if (rate_time > kExponentMax) {
    return admitted > 0 ? 1 : 0;
  }
  const double grown = admitted * std::expm1(rate_time);
  return grown / (1 + grown);
}

}  // namespace

double SizeModel::candidate(std::uint32_t number) {
  return std::exp2(static_cast<double>(kFirstExponent + number) / 2);
}

std::uint64_t SizeModel::id_of(const filter::Hash128& key) {
  return filter::remix(key) & ((std::uint64_t{1} << kIdBits) - 1);
}

void SizeModel::add(const filter::Hash128& key, std::uint64_t size_bytes) {
  const std::uint64_t id = id_of(key);
  if (id >> (kIdBits - sampled_shift_) != 0) {
    return;
  }
  const auto at = std::ranges::lower_bound(objects_, id, {}, &Object::id);
  if (at != objects_.end() && at->id == id) {
    at->requests += 1;
    at->size_bytes = size_bytes == 0 ? at->size_bytes : static_cast<double>(size_bytes);
    return;
  }
  if (size_bytes != 0) {
    objects_.insert(at, {id, 1, static_cast<double>(size_bytes)});
    while (objects_.size() > kObjectsMax) {
      thin_out();
    }
  }
}

// The sample keeps the half with the lower ids.
void SizeModel::thin_out() {
  ++sampled_shift_;
  std::erase_if(objects_,
                [&](const Object& object) { return object.id >> (kIdBits - sampled_shift_) != 0; });
}

void SizeModel::begin() {
  frozen_.clear();
  for (Object& object : objects_) {
    frozen_.push_back({object.requests, object.size_bytes, 0});
    object.requests *= kFade;
  }
  std::erase_if(objects_, [](const Object& object) { return object.requests < kForgotten; });
  frozen_budget_ =
      static_cast<double>(cache_bytes_) * std::exp2(-static_cast<double>(sampled_shift_));
  trying_ = 0;
  pass_ = 0;
  most_hits_ = -1;
}

void SizeModel::prepare(std::vector<Frozen>& objects, double c) {
  for (Frozen& object : objects) {
    object.admitted = std::exp(-object.size_bytes / c);
  }
}

// One step of the fixed-point iteration of the authors' code: what a cache of characteristic time
// `time` would hold tells how much longer or shorter it must be.
double SizeModel::next_time(const std::vector<Frozen>& objects, double time, double bytes) {
  double held = 0;
  for (const Frozen& object : objects) {
    held += object.size_bytes * resident(object.requests * time, object.admitted);
  }
  return held > 0 ? std::min(time * bytes / held, kTimeMax) : kTimeMax;
}

double SizeModel::hits_at(const std::vector<Frozen>& objects, double time) {
  double hits = 0;
  for (const Frozen& object : objects) {
    hits += object.requests * resident(object.requests * time, object.admitted);
  }
  return hits;
}

bool SizeModel::step() {
  if (pass_ == 0) {
    prepare(frozen_, candidate(trying_));
    time_ = 1;
  } else if (pass_ <= kPasses) {
    time_ = next_time(frozen_, time_, frozen_budget_);
  } else {
    // Among equals the largest c, which keeps least out.
    if (const double hits = hits_at(frozen_, time_); hits >= most_hits_) {
      most_hits_ = hits;
      found_ = candidate(trying_);
    }
    pass_ = -1;
    // Beyond the cache's own size nothing is kept out.
    if (candidate(trying_++) > static_cast<double>(cache_bytes_)) {
      best_ = found_;
      frozen_.clear();
    }
  }
  ++pass_;
  return frozen_.empty();
}

double SizeModel::hits(double c) const {
  std::vector<Frozen> objects = frozen_;
  prepare(objects, c);
  double time = 1;
  for (int pass = 0; pass < kPasses; ++pass) {
    time = next_time(objects, time, frozen_budget_);
  }
  return hits_at(objects, time);
}

std::uint64_t SizeModel::memory_bytes() const {
  return objects_.capacity() * sizeof(Object) + frozen_.capacity() * sizeof(Frozen);
}

}  // namespace encore::cache
