// The fields by which an origin knows a request: the parts of the head that is sent, and the
// text of all that it may decide access by. Pure functions, thread-safe.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "proxy/http/head_edits.h"
#include "proxy/http/head_writer.h"
#include "proxy/http/message.h"
#include "proxy/http/uri.h"
#include "proxy/request/request_context.h"

namespace encore::server {

// Fields that ask for a part, or for a response on a condition.
inline constexpr http::FieldSet kFieldsOfPart = {
    http::FieldId::kRange,           http::FieldId::kIfRange, http::FieldId::kIfNoneMatch,
    http::FieldId::kIfModifiedSince, http::FieldId::kIfMatch, http::FieldId::kIfUnmodifiedSince};

// "host[:port]" of the target as its key has it; empty where there is none.
class HostText {
 public:
  explicit HostText(const RequestContext& request) {
    const http::Target& target = request.target;
    if (request.has_uri()) {
      text_ = request.uri_text().substr(request.uri.authority,
                                        request.uri.path - request.uri.authority);
    } else if (!target.authority.host.empty()) {
      text_ = {room_.data(), http::write_host(target, room_)};
    }
  }
  HostText(const HostText&) = delete;
  HostText& operator=(const HostText&) = delete;
  std::string_view get() const { return text_; }

 private:
  std::array<char, http::kHostTextBytesMax> room_;
  std::string_view text_;
};

// The rule's edits of the request's fields; null: none.
const http::HeadEdits* edits_of(const RequestContext& request);

// The client's lines, as far as they are the origin's to know, without the fields of `left_out`.
void write_sent_fields(const RequestContext& request, http::FieldSet left_out,
                       http::HeadWriter& out);

// Writes the client's identity for the origin as we know it ourselves: the connection, the fields
// of trusted proxies, and the target that the key names. RFC 7239, and the names that were in use
// before it.
void write_forwarded(const RequestContext& request, std::string_view host, http::HeadWriter& out);

// The client's certificate subject, if the listener wants origins to know it.
void write_client_subject(const RequestContext& request, http::HeadWriter& out);

// Returns everything in a request that an origin may decide access by, as the origin receives it.
// These are the URL with its realm and query, its rewrite by a rule, the client's identity, and all
// end-to-end fields. Left out are fields that request a part or a validation, steer caches, or
// trace the request. If the origin allows one of two requests with equal texts, it allows the
// other. REQUIRES: request.has_uri().
std::string access_text(const RequestContext& request);

}  // namespace encore::server
