// ResponsePlan: what a client is sent, made from a response and the client's request: the whole,
// a range or several, 304, 412 or 416; or that more of the body must come first
// (docs/decisions/0335). Pure but for the boundary between parts, which is random. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "proxy/coding/coding.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/http/cache_status.h"
#include "proxy/http/range.h"
#include "proxy/http/stored_meta.h"
#include "proxy/net/loop.h"
#include "proxy/request/request_context.h"
#include "proxy/store/body.h"
#include "proxy/transfer/response.h"

namespace encore::server {

// Parts of a response. Borrows all that it points to.
struct ResponseSource {
  std::string_view head;              // status line and fields, without the empty line
  std::string_view more_fields = {};  // lines that are not in it
  const http::StoredMeta* meta = nullptr;
  std::optional<std::uint64_t> length;
  store::BodyRef body;           // or
  std::string_view inline_body;  // or
  std::optional<LargeBody> on_disk = {};
  bool whole = true;       // conditions may be held against it
  bool has_ranges = true;  // and ranges be cut from it
  // The length is not known and the body grows: ranges may wait until they are there.
  bool may_wait = false;
  // The head is that of this coding, into which the body is put on its way.
  std::optional<coding::Coding> coding = {};
  bool has_age = false;                   // Age is ours to say
  bool is_shared = false;                 // a shared cache may store and reuse it
  const std::string* trailers = nullptr;  // for a body whose length is not known
  std::string_view stored_trailers = {};  // for one whose length is
};

// Facts for the rest of the head.
struct ResponseMoment {
  const RequestContext& request;
  const http::CacheStatus& cache_status;
  MonotonicTime now;
  WallTime wall;
  std::string_view http_date;
};

// At this turn of the loop. Borrows the others.
ResponseMoment moment_of(const RequestContext& request, const http::CacheStatus& cache_status,
                         net::Loop& loop);

struct ResponsePlan {
  enum class Content : std::uint8_t {
    kNone,    // this response has none
    kUnread,  // nor is that of its source of any more use here
    kWhole,   // all of it, of a length that is known
    kRest,    // all of it, however long it will be
    kParts,   // `parts`
    kLater,   // nothing yet: the plan is made again when `needed` is there
  };
  struct Part {
    std::string text;  // in front of it
    http::ByteRange range;
  };

  int status = 0;
  std::string head;  // as ClientStream::Response has it
  ClientStream::Framing framing = ClientStream::Framing::kNone;
  Content content = Content::kNone;
  std::vector<Part> parts;
  http::RangeNeed needed = {};  // with kLater
  std::string end;              // behind the parts
  std::string trailers;         // for a source whose length is known, if they are to be sent
};

ResponsePlan plan_response(const ResponseSource& source, const ResponseMoment& moment);

// A 206 from a stored part. `range` lies within `stored`, both by the whole representation.
// REQUIRES: stored.range, stored.length.
ResponsePlan plan_stored_part(const ResponseSource& source, const ResponseMoment& moment,
                              const http::ContentRange& stored, const http::ByteRange& range);

// The fields that we add to each response but its framing: more_fields, Age, Via, Cache-Status.
void append_own_fields(const ResponseSource& source, const ResponseMoment& moment,
                       std::string& head);

}  // namespace encore::server
