#include "sim/workload/request_generator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "sim/workload/random_words.h"
#include "sim/workload/sampled_zipf.h"
#include "sim/workload/zipf.h"

namespace encore::sim {
namespace {

// Objects of different parts of a mixture never meet.
constexpr unsigned kPartShift = 56;

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// Two independent numbers in (0, 1) that belong to an object.
struct ObjectDraw {
  double u;
  double v;
};
ObjectDraw draw_for(std::uint64_t id, std::uint64_t seed) {
  const auto real = [](std::uint64_t x) { return (static_cast<double>(x >> 11U) + 0.5) * 0x1p-53; };
  const std::uint64_t first = mix(id + seed);
  return {real(first), real(mix(first + 0x9e3779b97f4a7c15U))};
}

double value_for(const Distribution& d, std::uint64_t id, std::uint64_t seed) {
  if (d.kind == Distribution::Kind::kConstant) {
    return d.location;
  }
  const ObjectDraw draw = draw_for(id, seed);
  double value = 0;
  switch (d.kind) {
    case Distribution::Kind::kPareto:
      value = d.location * std::pow(draw.u, -1 / d.shape);
      break;
    case Distribution::Kind::kEmpirical:
      return d.values[static_cast<std::size_t>(draw.u * static_cast<double>(d.values.size()))];
    default:  // lognormal, by Box and Muller
      value = d.location * std::exp(d.shape * std::sqrt(-2 * std::log(draw.u)) *
                                    std::cos(2 * std::numbers::pi * draw.v));
  }
  return std::min(value, d.maximum);
}

// A permutation of [0, size) in constant memory: a four-round Feistel network over the next power
// of four, walked until it falls inside.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t seed) : size_(size), seed_(seed) {
    const auto width = static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(size, 2) - 1));
    half_ = (width + 1) / 2;
  }
  std::uint64_t at(std::uint64_t i) const {
    do {
      i = step(i);
    } while (i >= size_);
    return i;
  }

 private:
  std::uint64_t step(std::uint64_t i) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_) - 1;
    std::uint64_t left = i >> half_;
    std::uint64_t right = i & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      left ^= mix(right + seed_ + (round << 60U)) & mask;
      std::swap(left, right);
    }
    return left << half_ | right;
  }
  std::uint64_t size_;
  std::uint64_t seed_;
  unsigned half_;
};

// Source of the ids.
class Ids {
 public:
  virtual ~Ids() = default;
  virtual std::uint64_t next(Xoshiro& random) = 0;
};

class ZipfIds final : public Ids {
 public:
  explicit ZipfIds(const GeneratorOptions& o) : zipf_(o.objects, o.alpha) {}
  std::uint64_t next(Xoshiro& random) override { return zipf_.draw(random); }

 private:
  Zipf zipf_;
};

class ShiftIds final : public Ids {
 public:
  explicit ShiftIds(const GeneratorOptions& o)
      : zipf_(o.objects, o.alpha),
        objects_(o.objects),
        every_(o.shift_every),
        step_(std::max<std::uint64_t>(
            1, static_cast<std::uint64_t>(o.shift_share * static_cast<double>(o.objects)))) {}
  std::uint64_t next(Xoshiro& random) override {
    const std::uint64_t epoch = made_++ / every_;
    return (zipf_.draw(random) + epoch * step_) % objects_;
  }

 private:
  Zipf zipf_;
  std::uint64_t objects_;
  std::uint64_t every_;
  std::uint64_t step_;
  std::uint64_t made_ = 0;
};

class WaveIds final : public Ids {
 public:
  explicit WaveIds(const GeneratorOptions& o)
      : zipf_(o.objects, o.alpha), objects_(o.objects), every_(o.shift_every) {}
  std::uint64_t next(Xoshiro& random) override {
    const std::uint64_t wave = made_++ / every_;
    return zipf_.draw(random) + wave * objects_;
  }

 private:
  Zipf zipf_;
  std::uint64_t objects_;
  std::uint64_t every_;
  std::uint64_t made_ = 0;
};

class TwiceIds final : public Ids {
 public:
  explicit TwiceIds(std::uint64_t apart) : apart_(apart) {}
  std::uint64_t next(Xoshiro&) override {
    if (again_) {
      again_ = false;
      return fresh_ - 1 - apart_;
    }
    again_ = fresh_ >= apart_;
    return fresh_++;
  }

 private:
  std::uint64_t apart_;
  std::uint64_t fresh_ = 0;  // the next new object
  bool again_ = false;       // an older one comes before it
};

class LoopIds final : public Ids {
 public:
  explicit LoopIds(std::uint64_t objects) : objects_(objects) {}
  std::uint64_t next(Xoshiro&) override { return objects_ == 0 ? at_++ : at_++ % objects_; }

 private:
  std::uint64_t objects_;  // 0: a scan, which never comes back
  std::uint64_t at_ = 0;
};

// Three kinds of request in random order but exact numbers (selection sampling): for one-hit
// objects; two for each of the other objects, in the order of a permutation; and the rest by Zipf.
class AkamaiIds final : public Ids {
 public:
  explicit AkamaiIds(const GeneratorOptions& o)
      : one_hit_(static_cast<std::uint64_t>(
            std::llround(o.one_hit_share * static_cast<double>(o.objects)))),
        others_(o.objects - one_hit_),
        sure_(2 * others_),
        zipf_(std::max<std::uint64_t>(others_, 1), o.alpha),
        order_(std::max<std::uint64_t>(sure_, 1), o.seed),
        one_hit_left_(one_hit_),
        sure_left_(sure_),
        left_(o.requests) {}

  std::uint64_t next(Xoshiro& random) override {
    const auto ticket =
        static_cast<std::uint64_t>(random.next_real() * static_cast<double>(left_--));
    if (ticket < one_hit_left_) {
      return others_ + --one_hit_left_;
    }
    if (ticket < one_hit_left_ + sure_left_) {
      return order_.at(--sure_left_) % others_;
    }
    return zipf_.draw(random);
  }

  std::uint64_t least_requests() const { return one_hit_ + sure_; }

 private:
  std::uint64_t one_hit_;
  std::uint64_t others_;
  std::uint64_t sure_;
  Zipf zipf_;
  Permutation order_;
  std::uint64_t one_hit_left_;
  std::uint64_t sure_left_;
  std::uint64_t left_;
};

class MixtureIds final : public Ids {
 public:
  struct Part {
    double until;  // share of this and all before
    std::unique_ptr<Ids> ids;
  };
  explicit MixtureIds(std::vector<Part> parts) : parts_(std::move(parts)) {}
  std::uint64_t next(Xoshiro& random) override {
    const double draw = random.next_real() * parts_.back().until;
    std::size_t i = 0;
    while (i + 1 < parts_.size() && draw >= parts_[i].until) {
      ++i;
    }
    return std::uint64_t{i} << kPartShift | parts_[i].ids->next(random);
  }

 private:
  std::vector<Part> parts_;
};

// Fills in time, size and lifetime of a request for its object.
void describe(const GeneratorOptions& options, double seconds, GeneratedRequest& request) {
  request.time_ns = static_cast<std::int64_t>(seconds * 1e9);
  request.size_bytes = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(value_for(options.size, request.id, options.seed)));
  const double ttl = value_for(options.ttl, request.id, options.seed + 1);
  constexpr double kTtlMax = 4e9;
  request.ttl_seconds =
      ttl > 0 ? static_cast<std::uint32_t>(std::clamp(ttl, 1.0, kTtlMax)) : 0xffffffffU;
}

class Stream final : public RequestGenerator {
 public:
  Stream(const GeneratorOptions& options, std::unique_ptr<Ids> ids)
      : options_(options), ids_(std::move(ids)), random_(options.seed) {}

  bool next(GeneratedRequest& request) override {
    if (made_ == options_.requests) {
      return false;
    }
    request.id = ids_->next(random_);
    const double gap = options_.poisson ? -std::log1p(-random_.next_real()) : 1.0;
    seconds_ += gap / options_.requests_per_second;
    request.number = ++made_;
    describe(options_, seconds_, request);
    return true;
  }

 private:
  GeneratorOptions options_;
  std::unique_ptr<Ids> ids_;
  Xoshiro random_;
  double seconds_ = 0;
  std::uint64_t made_ = 0;
};

class SampledStream final : public RequestGenerator {
 public:
  explicit SampledStream(const GeneratorOptions& options)
      : options_(options),
        zipf_(options.objects, options.alpha, options.sample, options.sample_seed),
        random_(options.seed) {}

  bool next(GeneratedRequest& request) override {
    if (zipf_.sampled().empty()) {
      return false;
    }
    const SampledZipf::Draw drawn = zipf_.draw(random_);
    if (drawn.passed >= options_.requests - number_) {
      number_ = options_.requests;
      return false;
    }
    const std::uint64_t events = drawn.passed + 1;
    seconds_ += (options_.poisson ? draw_gamma(events, random_) : static_cast<double>(events)) /
                options_.requests_per_second;
    request.id = drawn.id;
    request.number = number_ += events;
    describe(options_, seconds_, request);
    return true;
  }

 private:
  GeneratorOptions options_;
  SampledZipf zipf_;
  Xoshiro random_;
  double seconds_ = 0;
  std::uint64_t number_ = 0;
};

Result<void> check_sample(const GeneratorOptions& o) {
  if (!(o.sample > 0 && o.sample <= 1)) {
    return fail("a sample of " + std::to_string(o.sample) + ", accepted: above 0, up to 1");
  }
  if (o.sample < 1 && o.pattern != Pattern::kZipf) {
    return fail("a sample of another pattern than zipf");
  }
  const double sampled = o.sample * static_cast<double>(o.objects);
  if (o.sample < 1 && sampled > static_cast<double>(SampledZipf::kSampledMax)) {
    return fail("a sample of " + std::to_string(sampled) +
                " objects, accepted: up to 100 million; lower --sample");
  }
  return {};
}

Result<void> check(const GeneratorOptions& o) {
  if (auto fine = check_sample(o); !fine) {
    return fine;
  }
  const auto share = [](double x) { return x >= 0 && x <= 1; };
  if (o.requests == 0 || o.objects >= std::uint64_t{1} << kPartShift) {
    return fail(std::to_string(o.requests) + " requests for " + std::to_string(o.objects) +
                " objects, accepted: 1 or more, for less than 2^56");
  }
  if (!(o.alpha >= 0 && o.alpha < 100)) {
    return fail("alpha " + std::to_string(o.alpha) + ", accepted: 0 to 100");
  }
  if (!share(o.one_hit_share) || !share(o.shift_share)) {
    return fail("a share outside 0 to 1: " +
                std::to_string(share(o.shift_share) ? o.one_hit_share : o.shift_share));
  }
  if (o.shift_every == 0 || !(o.requests_per_second > 0)) {
    return fail("a shift every 0 requests, or a rate that is not above 0");
  }
  // Times in nanoseconds span 292 years; some are left for chance.
  constexpr double kSecondsMax = 8e9;
  if (static_cast<double>(o.requests) / o.requests_per_second > kSecondsMax) {
    return fail(std::to_string(o.requests) + " requests at a rate of " +
                std::to_string(o.requests_per_second) +
                " a second take longer than 250 years: raise --rate");
  }
  return {};
}

Result<std::unique_ptr<Ids>> make_ids(const GeneratorOptions& o);

Result<std::unique_ptr<Ids>> make_mixture(const GeneratorOptions& o) {
  std::vector<MixtureIds::Part> parts;
  double until = 0;
  constexpr std::size_t kPartsMax = 100;
  for (const MixturePart& part : o.mixture) {
    if (part.pattern == Pattern::kMixture || part.pattern == Pattern::kAkamai ||
        !(part.share > 0) || parts.size() == kPartsMax) {
      return fail("a mixture with a mixture or akamai in it, or a share not above 0");
    }
    GeneratorOptions inner = o;
    inner.pattern = part.pattern;
    auto ids = make_ids(inner);
    if (!ids) {
      return ids;
    }
    parts.push_back({until += part.share, std::move(*ids)});
  }
  if (parts.empty()) {
    return fail("a mixture of nothing: give --mix zipf=0.7,scan=0.3");
  }
  return std::make_unique<MixtureIds>(std::move(parts));
}

Result<std::unique_ptr<Ids>> make_ids(const GeneratorOptions& o) {
  switch (o.pattern) {
    case Pattern::kZipf:
      return std::make_unique<ZipfIds>(o);
    case Pattern::kShift:
      return std::make_unique<ShiftIds>(o);
    case Pattern::kWaves:
      return std::make_unique<WaveIds>(o);
    case Pattern::kTwice:
      return std::make_unique<TwiceIds>(o.objects);
    case Pattern::kLoop:
      return std::make_unique<LoopIds>(o.objects);
    case Pattern::kScan:
      return std::make_unique<LoopIds>(0);
    case Pattern::kMixture:
      return make_mixture(o);
    case Pattern::kAkamai:
      break;
  }
  auto ids = std::make_unique<AkamaiIds>(o);
  if (ids->least_requests() > o.requests) {
    return fail(std::to_string(o.requests) + " requests are too few for " +
                std::to_string(o.objects) +
                " objects, one-hit objects once and the others twice: " +
                std::to_string(ids->least_requests()) + " are needed");
  }
  return ids;
}

}  // namespace

Result<std::unique_ptr<RequestGenerator>> make_generator(const GeneratorOptions& options) {
  GeneratorOptions o = options;
  if (o.objects == 0) {
    o.objects = std::max<std::uint64_t>(
        1, o.pattern == Pattern::kAkamai ? o.requests / 10 * 4 : o.requests / 10);
  }
  if (auto fine = check(o); !fine) {
    return std::unexpected(fine.error());
  }
  if (o.sample < 1) {
    return std::make_unique<SampledStream>(o);
  }
  auto ids = make_ids(o);
  if (!ids) {
    return std::unexpected(ids.error());
  }
  return std::make_unique<Stream>(o, std::move(*ids));
}

}  // namespace encore::sim
