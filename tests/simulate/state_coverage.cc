// Compiled without access control (CMakeLists.txt), as held.cc is.
#include "tests/simulate/state_coverage.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "proxy/exchange/exchange.h"
#include "proxy/origin/fetch.h"
#include "proxy/process/worker.h"
#include "proxy/request/request_context.h"
#include "tests/simulate/under_way.h"

namespace encore::simulate {
namespace {

using server::Exchange;
using server::Fetch;
using Fetches = std::unordered_map<const server::Transfer*, const Fetch*>;

Fetches fetches_of(server::Proxy& proxy) {
  Fetches out;
  for (const auto& worker : proxy.workers()) {
    for (const auto& fetch : worker->fetches()) out[fetch->transfer_.get()] = fetch.get();
  }
  return out;
}

const Fetch* fetch_of(const Exchange& exchange, const Fetches& fetches) {
  const auto found = fetches.find(exchange.subscription_.transfer().get());
  return found == fetches.end() ? nullptr : found->second;
}

std::optional<Place> place_of(const Exchange& exchange, const Fetches& fetches) {
  using At = server::FetchState::At;
  const Fetch* const fetch = fetch_of(exchange, fetches);
  switch (exchange.steps_.step_) {
    case server::Step::kLoad:
      return Place::kDisk;
    case server::Step::kWait:
      if (exchange.subscription_.has_joined()) return Place::kWaiting;
      if (fetch == nullptr) return std::nullopt;
      if (fetch->state_ == At::kConnecting) return Place::kConnecting;
      return fetch->state_ == At::kSending ? Place::kAsking : Place::kHead;
    case server::Step::kRespond:
      if (fetch == nullptr || fetch->state_ != At::kBody) return Place::kSending;
      return exchange.subscription_.has_joined() ? Place::kShared : Place::kBody;
    default:
      return std::nullopt;  // these end within the turn that they begin in
  }
}

std::optional<Place> place_of(const UnderWay& request, const Fetches& fetches) {
  if (request.exchange != nullptr) return place_of(*request.exchange, fetches);
  if (request.has_reply) return Place::kSending;
  return request.is_kept ? std::optional(Place::kKept) : std::nullopt;
}

int descriptor_of(const server::OriginLink& link, const server::OriginLink::Open& open) {
  if (open.stream != nullptr) return open.stream->socket_.get();
  for (const auto& [key, server] : link.services_.pool.http2().servers_) {
    for (const auto& each : server.connections) {
      if (std::ranges::find(each->streams_, open.http2.get()) != each->streams_.end()) {
        return each->stream_->socket_.get();
      }
    }
  }
  return -1;
}

std::uint64_t tag_of(const server::RequestContext& request) {
  const http::Field* const field = request.head.fields.find("traceparent");
  std::uint64_t tag = 0;
  if (field != nullptr) {
    (void)std::from_chars(field->value.data(), field->value.data() + field->value.size(), tag);
  }
  return tag;
}

constexpr std::uint32_t bits(std::initializer_list<Place> places) {
  std::uint32_t out = 0;
  for (const Place place : places) out |= 1U << static_cast<unsigned>(place);
  return out;
}

struct Never {
  Fate fate;
  std::uint32_t places;
  std::string_view why;
};

constexpr auto kNever = std::to_array<Never>({
    {Fate::kHit,
     bits({Place::kConnecting, Place::kAsking, Place::kHead, Place::kWaiting, Place::kBody,
           Place::kShared}),
     "a hit asks nobody"},
    {Fate::kMiss, bits({Place::kDisk}), "what is read from a disk was found"},
    {Fate::kMiss, bits({Place::kWaiting, Place::kShared}), "that is called collapsed"},
    {Fate::kValidated, bits({Place::kDisk}), "what is validated was read before"},
    {Fate::kValidated, bits({Place::kWaiting, Place::kShared}), "that is called collapsed"},
    {Fate::kCollapsed,
     bits({Place::kDisk, Place::kConnecting, Place::kAsking, Place::kHead, Place::kBody}),
     "these are of the request that asked"},
    {Fate::kHit, bits({Place::kKept}), "a request that is done is nothing any more"},
    {Fate::kMiss, bits({Place::kKept}), "a request that is done is nothing any more"},
    {Fate::kPart, bits({Place::kKept}), "a request that is done is nothing any more"},
    {Fate::kValidated, bits({Place::kKept}), "a request that is done is nothing any more"},
    {Fate::kCollapsed, bits({Place::kKept}), "a request that is done is nothing any more"},
    {Fate::kPurged, bits({Place::kKept}), "a request that is done is nothing any more"},
    {Fate::kCoded, UINT32_MAX, "compression is not simulated"},
    {Fate::kOriginGone, bits({Place::kDisk, Place::kSending, Place::kKept}),
     "nothing is asked of an origin for it"},
});

}  // namespace

std::string_view why_never(Fate fate, Place place) {
  for (const Never& each : kNever) {
    if (each.fate == fate && (each.places & bits({place})) != 0) return each.why;
  }
  return {};
}

std::string counter_of(Fate fate, Place place) {
  return "road: " + std::string(kFateNames.at(static_cast<std::size_t>(fate))) + ": " +
         std::string(kPlaceNames.at(static_cast<std::size_t>(place)));
}

void StateCoverage::look(server::Proxy& proxy) {
  const Fetches fetches = fetches_of(proxy);
  each_under_way(proxy, [&](const UnderWay& request) {
    const auto place = place_of(request, fetches);
    if (!place || *place == Place::kKept) return;
    const Exchange* const exchange = request.exchange;
    if (exchange == nullptr) return note(Fate::kHit, *place);
    const Fetch* const fetch = fetch_of(*exchange, fetches);
    const server::Outcome outcome = exchange->record_.outcome;
    const bool responds = exchange->steps_.is_at(server::Step::kRespond);
    if (!http::range_value(exchange->request_->head).empty()) note(Fate::kPart, *place);
    if (exchange->subscription_.has_joined() && exchange->subscription_.transfer() != nullptr) {
      note(Fate::kCollapsed, *place);
    } else if (*place == Place::kDisk || (responds && outcome == server::Outcome::kHit)) {
      note(Fate::kHit, *place);
    } else if ((fetch != nullptr && fetch->plan_.stored) ||
               (responds && outcome == server::Outcome::kRevalidated)) {
      note(Fate::kValidated, *place);
    } else if (exchange->subscription_.is_asker()) {
      note(Fate::kMiss, *place);
    }
    // It has been refused before, and another server or address is tried.
    if (*place == Place::kConnecting &&
        !(fetch->link_.tried_.empty() && fetch->link_.tried_addresses_.empty())) {
      note(Fate::kOriginGone, *place);
    }
  });
}

void StateCoverage::note_all(server::Proxy& proxy, Fate fate) {
  const Fetches fetches = fetches_of(proxy);
  each_under_way(proxy, [&](const UnderWay& request) {
    if (const auto place = place_of(request, fetches)) note(fate, *place);
  });
}

void StateCoverage::note_key(server::Proxy& proxy, Fate fate, const filter::Hash128& key) {
  const Fetches fetches = fetches_of(proxy);
  each_under_way(proxy, [&](const UnderWay& request) {
    const Exchange* const exchange = request.exchange;
    const auto place = place_of(request, fetches);
    if (!place) return;
    const server::RequestContext* const asked =
        exchange != nullptr ? exchange->request_.get() : request.reply;
    if (asked == nullptr || asked->hash.lo != key.lo || asked->hash.hi != key.hi) return;
    note(fate, *place);
  });
}

void StateCoverage::note_tag(server::Proxy& proxy, Fate fate, std::uint64_t tag, Others others) {
  const Fetches fetches = fetches_of(proxy);
  const Exchange* met = nullptr;
  each_under_way(proxy, [&](const UnderWay& request) {
    const Exchange* const exchange = request.exchange;
    if (exchange != nullptr && tag_of(*exchange->request_) == tag) met = exchange;
    if (exchange != nullptr) return;
    if (request.reply != nullptr && tag_of(*request.reply) == tag) note(fate, Place::kSending);
  });
  if (met == nullptr) return;
  if (const auto place = place_of(*met, fetches)) note(fate, *place);
  if (others == Others::kNotMet || met->subscription_.transfer() == nullptr) return;
  each_under_way(proxy, [&](const UnderWay& request) {
    const Exchange* const exchange = request.exchange;
    if (exchange == nullptr || exchange == met ||
        exchange->subscription_.transfer() != met->subscription_.transfer())
      return;
    if (const auto place = place_of(*exchange, fetches)) note(fate, *place);
  });
}

void StateCoverage::note_origin(server::Proxy& proxy, Fate fate, int descriptor) {
  const Fetches fetches = fetches_of(proxy);
  for (const auto& [transfer, fetch] : fetches) {
    const auto* const open = std::get_if<server::OriginLink::Open>(&fetch->link_.state_);
    if (open == nullptr || descriptor_of(fetch->link_, *open) != descriptor) continue;
    each_under_way(proxy, [&](const UnderWay& request) {
      const Exchange* const exchange = request.exchange;
      if (exchange == nullptr || exchange->subscription_.transfer().get() != transfer) return;
      if (const auto place = place_of(*exchange, fetches)) note(fate, *place);
    });
  }
}

void StateCoverage::tell(const Count& count) {
  for (std::size_t fate = 0; fate < counts_.size(); ++fate) {
    for (std::size_t place = 0; place < counts_[fate].size(); ++place) {
      const std::uint64_t value = std::exchange(counts_[fate][place], 0);
      if (value == 0) continue;
      count(counter_of(static_cast<Fate>(fate), static_cast<Place>(place)), value);
    }
  }
}

}  // namespace encore::simulate
