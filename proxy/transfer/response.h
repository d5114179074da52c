// Responses as the server handles them: the data next to a stored object, and the data that the
// readers of a transfer share. Values, thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/charge.h"
#include "cache/types.h"
#include "proxy/http/message.h"
#include "proxy/http/parser.h"
#include "proxy/http/stored_head.h"
#include "proxy/http/stored_meta.h"
#include "proxy/http/storing.h"
#include "proxy/observe/origin_visit.h"
#include "proxy/observe/outcome.h"
#include "proxy/observe/redirect_refusal.h"
#include "proxy/store/object.h"

namespace encore::server {

// Data next to each stored object, as its meta blob. The object's key text is the primary key, then
// the selecting names, then the variant key, one after the other; its head bytes are the stored
// head (StoredMeta::head_bytes of them), then the trailer section's lines, then the LargeBody if
// its body lies in parts on disk, then the tags.
struct ObjectMeta {
  http::StoredMeta http;
  std::uint64_t variant = 0;  // the kernel's number of the variant; 0 without Vary
  std::uint32_t primary_bytes = 0;
  std::uint32_t names_bytes = 0;
  // kPlain: no selection, no extras, so that a fresh hit may go out without a closer look.
  // kOnProbation: it is in memory for as long as it is on probation there; not kept on disk.
  static constexpr std::uint16_t kPlain = 1;
  static constexpr std::uint16_t kOnProbation = 2;
  std::uint16_t plain = 0;
  bool is_on_probation() const { return (plain & kOnProbation) != 0; }
  // Place of Content-Type's value in the stored head; for the access log, and for bans.
  std::uint16_t type_bytes = 0;
  std::uint32_t type_offset = 0;
  // The end of the object's head bytes: the tags by which it can be purged, each with a line feed.
  std::uint32_t tag_bytes = 0;
  std::uint32_t large_bytes = 0;  // kLargeBodyBytes, or 0: it has no parts on disk
};
static_assert(sizeof(ObjectMeta) == cache::kRecordBytes);

// A body in parts on disk, and the data to find them. The object may also have the whole body in
// memory, or none of it.
struct LargeBody {
  std::uint64_t number = 0;  // disk::Disks::new_body_number()
  std::uint64_t length = 0;
  friend bool operator==(const LargeBody&, const LargeBody&) = default;
};
inline constexpr std::size_t kLargeBodyBytes = 16;
std::string write_large_body(const LargeBody& body);  // kLargeBodyBytes bytes

inline const ObjectMeta& meta_of(const store::Object& object) {
  return *reinterpret_cast<const ObjectMeta*>(object.meta().data());
}
inline std::string_view primary_key_of(const store::Object& object) {
  return object.key().substr(0, meta_of(object).primary_bytes);
}
inline std::string_view names_of(const store::Object& object) {
  const ObjectMeta& meta = meta_of(object);
  return object.key().substr(meta.primary_bytes, meta.names_bytes);
}
inline std::string_view variant_key_of(const store::Object& object) {
  const ObjectMeta& meta = meta_of(object);
  return object.key().substr(meta.primary_bytes + meta.names_bytes);
}
// The parts of an object's head bytes. Views into `head`.
struct HeadParts {
  const ObjectMeta& meta;
  std::string_view head;

  std::string_view stored_head() const { return head.substr(0, meta.http.head_bytes); }
  std::string_view content_type() const { return head.substr(meta.type_offset, meta.type_bytes); }
  std::string_view trailers() const {
    const std::string_view rest = head.substr(meta.http.head_bytes);
    return rest.substr(0, rest.size() - meta.tag_bytes - meta.large_bytes);
  }
  std::optional<LargeBody> large_body() const;
  std::string_view tags() const { return head.substr(head.size() - meta.tag_bytes); }
};
inline HeadParts head_parts(const store::Object& object) {
  return {.meta = meta_of(object), .head = object.head()};
}
inline std::string_view stored_head_of(const store::Object& object) {
  return head_parts(object).stored_head();
}
inline std::string_view content_type_of(const store::Object& object) {
  return head_parts(object).content_type();
}
inline std::string_view trailers_of(const store::Object& object) {
  return head_parts(object).trailers();
}
inline std::string_view tags_of(const store::Object& object) { return head_parts(object).tags(); }
inline std::optional<LargeBody> large_body_of(const store::Object& object) {
  return head_parts(object).large_body();
}
// True if no body bytes are in memory.
inline bool is_on_disk_alone(const store::Object& object) {
  return meta_of(object).large_bytes != 0 && object.body_size() == 0;
}
// Length of the body, wherever it lies.
std::uint64_t body_length_of(const store::Object& object);

// Returns the kernel's number of a variant; 0 without selecting names.
std::uint64_t variant_of(std::string_view names, std::string_view variant_key);

// The meta and head that an object would have if the store had space for it.
struct UnstoredHead {
  ObjectMeta meta;
  std::string head;
};

// The rules' view of a stored response that the kernel holds for stale from `fresh_until` on.
inline http::StoredMeta meta_until(const store::Object& object, MonotonicTime fresh_until) {
  http::StoredMeta meta = meta_of(object).http;
  http::mark_stale(meta, fresh_until);
  return meta;
}

// Place of a value in a head; no bytes: it has none, or one that is too long to be noted.
struct ValuePlace {
  std::uint32_t offset = 0;
  std::uint16_t bytes = 0;
};

// A response that the readers of a transfer share. Immutable once published, but for `stored` and
// `overtaken`, of its own worker alone, and trailers, read when the body is complete.
struct SharedResponse {
  // Status line and end-to-end fields, each with CRLF, without the empty line. Those that are for
  // the one who asked alone (Age as it came, Set-Cookie, and what private="..." and
  // no-cache="..." name) stand last.
  std::string head;
  std::size_t common_bytes = 0;  // part of the head that others may see
  ValuePlace type_place;         // of Content-Type, in that part
  std::optional<std::uint64_t> length;
  http::StoredMeta meta;
  std::string names;                        // selecting names (http/vary.h); "*": may not be shared
  std::string variant_key;                  // key of the request that was sent
  std::uint64_t variant = 0;                // the kernel's number for it
  Outcome outcome = Outcome::kUncacheable;  // for the one who asked
  http::StoreReason reason = http::StoreReason::kOk;
  RedirectRefusal unfollowed =
      RedirectRefusal::kNone;           // for a redirection that its rule might have followed
  cache::AdmissionRule admission = {};  // by which it is stored
  // The kernel's decision for the first reader.
  cache::AdmitReason admitted = cache::AdmitReason::kPolicyRefuses;
  bool shareable = false;  // with those for whom it is fresh; else they ask for themselves
  // Not shareable, and going into the cache: who asks may wait for that, and validate it then. Why
  // the body is not read as it comes: docs/decisions/0293.
  bool is_for_validation = false;
  // Going into the cache as it was published; nothing: that shows at its end.
  std::optional<bool> stored = false;
  // It was to go into the cache, and came too late for it. For its own worker alone, as `stored`.
  bool overtaken = false;
  bool has_large_head = false;  // larger than the store takes
  bool whole = true;            // a full representation, that ranges may be cut from
  OriginVisit visit;
  std::string content_type;
  std::string trailers;

  // For make_reused(): the text's room is kept.
  void clear();

  // As AdmitRequest wants it, where 0 says that the size is not known: an empty body is one byte.
  std::uint64_t size_for_admission() const {
    return length ? std::max<std::uint64_t>(*length, 1) : 0;
  }
};

// Data of a forwarded head, in addition to the response.
struct ForwardHead {
  std::optional<std::uint64_t> length = {};    // Content-Length; nothing: none
  std::string_view http_date;                  // supplied where the origin left it out
  std::span<const std::string> withheld = {};  // lower-case names of fields that others never see
};
// The part of it that others may see, at its beginning.
struct CommonHead {
  std::size_t bytes = 0;
  ValuePlace content_type;
};
// Builds the head that is forwarded: all end-to-end fields as they came, but those that end here.
// Age, Set-Cookie and what is withheld from others come last. `text` is cleared first.
CommonHead build_forward_head(const http::ResponseHead& response, const ForwardHead& more,
                              const http::HeadOptions& options, std::string& text);

// The lines of a response that are for the one who asked alone, as above.
std::string private_lines(const http::ResponseHead& response, std::span<const std::string> withheld,
                          const http::HeadOptions& options);

// Lets `meta` know where the entity tag stands in `head`, if there is one.
void place_etag(std::string_view head, std::string_view etag, http::StoredMeta& meta);
// The same for the value of Content-Type, for the access log.
void place_content_type(std::string_view head, ObjectMeta& meta);

// The lines of a trailer section that may be forwarded (RFC 9110 6.5.1): none that frame, route or
// are of one hop, and none that `drops` answers true for. False where they are malformed: nothing
// of the message is to be trusted then.
bool forwardable_trailers(std::string_view raw, const http::Limits& limits,
                          const std::function<bool(const http::Field&)>& drops, std::string& out);

}  // namespace encore::server
