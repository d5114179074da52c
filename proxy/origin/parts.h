// Parts of a whole: asking for the rest of a stored one, and joining the stored part with the one
// that came (RFC 9111 3.3 and 3.4, RFC 9110 15.3.7). Confined to the worker whose services are
// given.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "proxy/origin/received_response.h"
#include "proxy/origin/services.h"
#include "proxy/store/body.h"
#include "proxy/store/object.h"
#include "proxy/transfer/response.h"

namespace encore::server {

// True if a response to a plain GET can be made of this stored part and what the origin sends
// behind it. The part must be the beginning, with a strong entity tag, and no larger than
// `bytes_max`, for it is copied in one step.
bool may_complete(const store::Object& part, std::uint64_t bytes_max);

// The lines that ask for the rest, or, where it is another representation by now, all of it.
std::string completion_fields(const store::Object& part);

// The rest of a stored part has come: makes of `received` the whole, whose first bytes are here
// already. False, and nothing done, where it is not that rest.
bool complete_part(const RequestContext& request, const store::Object& part,
                   ReceivedResponse& received);

// True if a 206 brings just what the client's Range asks for.
bool fits_range(const RequestContext& request, const http::ResponseHead& head);

// Appends bytes [begin, end) of an object's body. False where there is no memory.
bool append_range(const store::Object& from, const http::ByteRange& range, store::Body& to);

// The data to store of a part that came.
struct PartToStore {
  ObjectMeta& meta;
  std::string& head;
  std::string& tags;
  store::BodyRef& body;
};
// Joins it with the part that is stored, where they fit: its head, its tags, and its body if that
// is another one. `reserve` takes room in the cache for a body of so many bytes. False: it is not
// to be stored.
bool join_parts(OriginServices& services, const RequestContext& request,
                const ReceivedResponse& received, const std::function<bool(std::uint64_t)>& reserve,
                const PartToStore& part);

}  // namespace encore::server
