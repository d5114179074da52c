// Statements about a response in the cache, the same for one that is stored and for one that is
// freshened. Confined to the worker whose services are given.
#pragma once

#include <cstdint>
#include <string_view>

#include "cache/types.h"
#include "proxy/http/stored_meta.h"
#include "proxy/origin/received_response.h"
#include "proxy/origin/services.h"
#include "proxy/store/object.h"
#include "proxy/transfer/latest_responses.h"
#include "proxy/transfer/response.h"

namespace encore::server {

inline cache::Key cache_key(const RequestContext& request) { return {request.hash, request.key}; }

// The directives that govern a response that has come, without those that a rule ignores. REQUIRES:
// its treatment is known.
http::ResponseDirectives governing_directives(const RequestContext& request,
                                              const ReceivedResponse& received);

// True if the origin saw a Cookie as it sent what has come, or the stored part that this completes.
bool came_with_cookie(const RequestContext& request, const ReceivedResponse& received);
// Tells if freshness may be guessed of it: without a Cookie, or where the operator allows it.
http::Heuristic heuristic_for(const RequestContext& request, const ReceivedResponse& received);

// Adds what the response does not say itself: where it comes from, for
// how long it may be served while it is validated.
void complete_meta(const RequestContext& request, const ReceivedResponse& received,
                   http::StoredMeta& meta);

// Until when it is worth keeping.
MonotonicTime keep_until(const RequestContext& request, const ReceivedResponse& received,
                         const http::StoredMeta& meta);

// Commits an object to the kernel, and to the disk tier as far as that is decided. If it is stored,
// the kernel has a reference of its own. An overtaken response is not stored: the object in its
// place is newer, or was stored after an invalidation.
struct Entry {
  const store::ObjectRef& object;
  const ReceivedResponse& received;
  MonotonicTime keep_until;
  cache::AdmitReason admitted = cache::AdmitReason::kResident;  // as the kernel decided
  std::uint64_t reserved_bytes = 0;
};
cache::CommitOutcome commit_entry(OriginServices& services, const RequestContext& request,
                                  const Entry& entry);
// Removes the stored variant from memory and disk.
void remove_entry(OriginServices& services, const RequestContext& request, std::uint64_t variant);
// Removes all variants of a key.
void invalidate_entries(OriginServices& services, const cache::Key& key);
// All variants are stale from now on, in memory and on disk.
void mark_entries_stale(OriginServices& services, const RequestContext& request);

// A newer response of the variant is not stored: the stored one is older, and ends. Does nothing if
// the response itself was overtaken.
void end_older(OriginServices& services, const RequestContext& request,
               const ReceivedResponse& received, const SharedResponse& response);

// True if the key was invalidated or purged since the request was sent, for the response may be
// from before that; or if a reload has changed by which rule it may be stored for others.
bool is_overtaken(const OriginServices& services, const RequestContext& request,
                  const ReceivedResponse& received);

// The same as the kernel asks it; true as well if a newer response of the variant has come.
class InvalidatedSinceRequest final : public cache::InvalidationCheck {
 public:
  // `services`, `request` and `received` are borrowed.
  InvalidatedSinceRequest(const OriginServices& services, const RequestContext& request,
                          const ReceivedResponse& received, const LatestResponses::Variant& variant,
                          const LatestResponses::Answer& answer)
      : services_(services),
        request_(request),
        received_(received),
        variant_(variant),
        answer_(answer) {}
  bool is_overtaken() const override;
  // Notes the answer, so that what is older and comes late sees it.
  void note() const;

 private:
  const OriginServices& services_;
  const RequestContext& request_;
  const ReceivedResponse& received_;
  bool is_gone(const LatestResponses::Newer& newer) const;

  const LatestResponses::Variant variant_;
  const LatestResponses::Answer answer_;
};

}  // namespace encore::server
