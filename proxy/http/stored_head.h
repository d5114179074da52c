// Heads as the cache keeps and sends them: the bytes of a stored response's head, made once, so
// that a hit only appends what changes (Age, Via, Cache-Status, Connection). Pure,
// thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/cache_control.h"
#include "proxy/http/freshness.h"
#include "proxy/http/message.h"
#include "proxy/http/range.h"
#include "proxy/http/sent_fields.h"
#include "proxy/http/stored_meta.h"
#include "proxy/http/storing.h"

namespace encore::http {

struct HeadOptions {
  bool strip_tags = false;  // Surrogate-Key, Cache-Tag and Surrogate-Control end here
  std::vector<std::string> strip_fields = {};  // these too; lower case
};

// True if a field of a response ends here: those that are ours alone to read, and a Cache-Status
// that cannot be read, for the member that we add would be lost with it (RFC 9211 2).
bool is_stripped(const Field& field, const HeadOptions& options) noexcept;

// Builds the stored head into `out` (cleared first): status line and field lines each with CRLF,
// without the empty line that ends a head. Left out: hop-by-hop and Connection-listed fields,
// Age, fields of qualified no-cache and private, Content-Length (given anew from `body_bytes`
// where known; a 204 has none), tags where options say so. A missing Date is supplied. The
// version is always HTTP/1.1. `meta` learns head_bytes, etag_offset, etag_bytes.
void build_stored_head(const ResponseHead& response, const ResponseDirectives& directives,
                       std::optional<std::uint64_t> body_bytes, UnixSeconds arrival,
                       const HeadOptions& options, std::string& out, StoredMeta& meta);

// Builds the head that results when `update` (a 304, or a HEAD's response) freshens a stored one
// (RFC 9111 3.2): its fields replace those of the same name. Exceptions are the fields of the
// stored body, Content-Length, Content-Encoding, Content-Range, and the framing; and Set-Cookie,
// which is for the requesting client. REQUIRES: stored_head was built by build_stored_head. `out`
// must not be its bytes.
void build_freshened_head(std::string_view stored_head, const ResponseHead& update,
                          const ResponseDirectives& update_directives, UnixSeconds arrival,
                          const HeadOptions& options, std::string& out, StoredMeta& meta);

// Writes a stored head anew without the fields that its directives keep from others. False, and
// nothing done, where it has none of them.
bool drop_stripped(const ResponseHead& stored, const ResponseDirectives& directives,
                   std::string& out, StoredMeta& meta);

// The request whose response freshens the stored one.
struct Validation {
  const RequestHead& request;
  const Target& target;
  const RequestDirectives& directives;
  std::span<const std::string> targets;  // targeted fields that govern us
  const VaryOptions& vary;
  Exchange exchange;
  Heuristic heuristic = Heuristic::kAllowed;
  // Further fields of the update that are for its client alone, lower case.
  std::span<const std::string> withheld = {};
};

// A stored response after it was freshened.
struct Freshened {
  StoredMeta meta;
  // Whether it may still be stored: the rules of storing, over the merged head. If not, it answers
  // the request that validated it, and nobody else.
  StoreDecision decision;
  std::string names;  // selecting names of the merged head (vary.h)
};

// The whole of freshening: builds the new head into `out` and computes all else anew, with the age
// and the dates of the `update`. REQUIRES as build_freshened_head.
Freshened freshen(std::string_view stored_head, const ResponseHead& update,
                  const Validation& validation, const StoreOptions& store,
                  const HeadOptions& options, std::string& out);

// Heads of answers made from a stored response, in the form of a stored head, Content-Length
// included. All of them replace `out`.
// 206 with one range of it (RFC 9110 15.3.7.1); nothing for a length that is not known.
void build_partial_head(const ResponseHead& stored, const ByteRange& range,
                        std::optional<std::uint64_t> length, std::string& out);
// 206 with several, whose body is `body_bytes` long (15.3.7.2; range.h writes the parts).
void build_multipart_head(const ResponseHead& stored, std::string_view boundary,
                          std::uint64_t body_bytes, std::string& out);
// 416 (15.5.17), without a body. It names the stored response's Date and validators.
void build_unsatisfiable_head(const ResponseHead& stored, std::uint64_t length, std::string& out);
// 200 from the parts of a 206 that together are the whole (15.3.7.3).
void build_whole_head(const ResponseHead& partial, std::uint64_t length, std::string& out);

// Parses a stored head. Panics on bytes that build_stored_head did not make.
void read_stored_head(std::string_view stored_head, ResponseHead& head);
// The value of the first Content-Type line of a head in the form of a stored one; empty: it has
// none. Parses nothing else.
std::string_view content_type_in(std::string_view stored_head) noexcept;

// Writes the head of a 304 made from a stored one to `out` (cleared first), in the same form. It
// has the fields that RFC 9110 15.4.5 names (Cache-Control, Content-Location, Date, ETag, Expires,
// Vary), the targeted ones, and Last-Modified if there is no ETag; Set-Cookie and the rest stay
// out.
void build_not_modified(const ResponseHead& stored, std::string& out);

}  // namespace encore::http
