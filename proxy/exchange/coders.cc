#include "proxy/exchange/coders.h"

#include <array>
#include <span>
#include <utility>

#include "base/check.h"
#include "cache/charge.h"
#include "proxy/coding/make_encoder.h"
#include "proxy/transfer/coded_form.h"

namespace encore::server {
namespace {

using coding::Coding;
using InputAction = coding::Encoder::InputAction;

struct Counters {
  Counter& responses;
  Counter& read;
  Counter& made;
};

Counters counters_of(WorkerStats& stats, Coding coding) {
  switch (coding) {
    case Coding::kZstd:
      return {stats.compressed_zstd, stats.compressed_zstd_read, stats.compressed_zstd_made};
    case Coding::kBrotli:
      return {stats.compressed_br, stats.compressed_br_read, stats.compressed_br_made};
    case Coding::kGzip:
      break;
  }
  return {stats.compressed_gzip, stats.compressed_gzip_read, stats.compressed_gzip_made};
}

}  // namespace

struct Coders::Encoder {
  std::unique_ptr<coding::Encoder> encoder;
  CodingMemory::Share memory;
};

std::optional<Coders::Encoder> Coders::make_encoder(const Compression& compression, Coding coding) {
  const int level = compression.level(coding);
  auto share =
      parts_.memory.take(coding::encoder_bytes_max(coding, level), compression.memory_bytes());
  std::unique_ptr<coding::Encoder> encoder;
  if (share) encoder = coding::make_encoder(coding, level);
  if (encoder == nullptr) {
    parts_.stats.compression_refused.add();
    return std::nullopt;
  }
  return Encoder{std::move(encoder), std::move(*share)};
}

std::optional<std::string> Coders::code(const Compression& compression, Coding coding,
                                        std::string_view content) {
  ENCORE_CHECK(content.size() <= kAtOnceBytes, "what is coded in one step is short");
  const auto made = make_encoder(compression, coding);
  if (!made) return std::nullopt;
  constexpr std::size_t kStep = 8 * 1024;
  std::string coded;
  std::size_t used = 0;
  while (true) {
    const std::size_t before = coded.size();
    coded.resize(before + kStep);
    const auto step = made->encoder->encode(
        std::as_bytes(std::span(content.substr(used))),
        std::as_writable_bytes(std::span(coded).subspan(before)), InputAction::kEnd);
    used += step.used;
    coded.resize(before + step.made);
    if (step.is_broken) return std::nullopt;
    if (step.is_done) break;
  }
  count_work(coding, content.size(), coded.size());
  return coded;
}

std::unique_ptr<CodedBody> Coders::begin(const Compression& compression,
                                         const CodingRequest& request,
                                         std::function<void()> on_more) {
  auto made = make_encoder(compression, request.coding);
  if (!made) return nullptr;
  const bool kept = request.keep == CodedBody::Keep::kAll;
  auto body = parts_.store->make_body(
      {.length = {}, .use = kept ? store::BodyUse::kStored : store::BodyUse::kTransfer});
  if (!body) return nullptr;
  return std::make_unique<CodedBody>(parts_.loop, turn_,
                                     CodedBody::Made{.encoder = std::move(made->encoder),
                                                     .memory = std::move(made->memory),
                                                     .body = std::move(*body),
                                                     .flush = request.flush,
                                                     .keep = request.keep},
                                     std::move(on_more));
}

void Coders::keep(const RequestContext& request, const store::Object& object, Coding coding,
                  const store::BodyRef& body) {
  const CodedForm form = coded_form(head_parts(object), coding, body->size());
  const std::uint64_t charge = cache::charge_for({.key = object.key().size(),
                                                  .meta = sizeof(ObjectMeta),
                                                  .head = form.head.size(),
                                                  .body = body->size()});
  const cache::Key key{request.hash, request.key};
  const MonotonicTime now = parts_.loop.now();
  // So much of it that the kernel says no is not worth keeping.
  const std::uint64_t variant = meta_of(object).variant;
  if (!parts_.kernel->reserve_growth(key, variant, charge, now)) return;
  auto writer = parts_.store->reserve({.key = object.key(), .length = body->size(), .body = body});
  Result<store::ObjectRef> made = fail("no memory");
  if (writer) {
    made = (*writer)->commit({.key = object.key(),
                              .meta = std::as_bytes(std::span(&form.meta, 1)),
                              .head = form.head,
                              .is_form = true});
  }
  // Another worker may have been first: its form stays.
  if (!made || !object.add_form(coding::number_of(coding), std::move(*made))) {
    parts_.kernel->abort(key, charge, now);
    return;
  }
  parts_.kernel->grow(key,
                      {.variant = variant,
                       .payload = store::ObjectRef::share(object).payload(),
                       .reserved_bytes = charge},
                      now);
}

void Coders::keep(const RequestContext& request, const store::Object& object, Coding coding,
                  std::string_view body) {
  auto copy = parts_.store->make_body({.length = body.size(), .use = store::BodyUse::kStored});
  if (!copy) return;
  const auto bytes = std::as_bytes(std::span(body));
  if ((*copy)->append(bytes) != bytes.size()) return;
  (*copy)->complete();
  keep(request, object, coding, *copy);
}

void Coders::count_response(Coding coding) { counters_of(parts_.stats, coding).responses.add(); }

void Coders::count_work(Coding coding, std::uint64_t read, std::uint64_t made) {
  const Counters counters = counters_of(parts_.stats, coding);
  counters.read.add(read);
  counters.made.add(made);
}

}  // namespace encore::server
