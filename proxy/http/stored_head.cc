#include "proxy/http/stored_head.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "proxy/http/conditional.h"
#include "proxy/http/framing.h"
#include "proxy/http/head_writer.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/parser.h"
#include "proxy/http/structured.h"
#include "proxy/http/targeted.h"
#include "proxy/http/vary.h"

namespace encore::http {
namespace {

constexpr FieldSet kTags = {FieldId::kCacheTag, FieldId::kSurrogateKey, FieldId::kSurrogateControl};

// Fields that describe the stored body, which a 304 does not change (RFC 9111 3.2).
constexpr FieldSet kOfTheBody = {FieldId::kContentLength, FieldId::kContentEncoding,
                                 FieldId::kContentRange, FieldId::kTrailer};

bool describes_body(const Field& field) noexcept { return kOfTheBody.has(field.id); }

bool is_listed(const std::vector<std::string>& lower_names, std::string_view name) noexcept {
  return std::ranges::any_of(
      lower_names, [name](const std::string& listed) { return equals_lower(name, listed); });
}

// More than a head needs in addition to the lines that are copied: its status line, Date,
// Content-Length and Content-Range.
constexpr std::size_t kOwnLinesBytes = 192;

// Writes field lines and takes note of where the entity tag is. The text is complete when it ends.
class Builder {
 public:
  // `copied_bytes` as of the head whose lines are copied.
  Builder(std::string& out, StoredMeta& meta, std::size_t copied_bytes)
      : writer_(cleared(out), copied_bytes + kOwnLinesBytes), copier_(writer_), meta_(meta) {
    meta_.etag_offset = 0;
    meta_.etag_bytes = 0;
  }

  void status_line(unsigned status, std::string_view reason) {
    writer_.status_line(status, reason);
  }
  void line(std::string_view name, std::string_view value) { copier_.add(name, value); }
  void line(const Field& field) {
    if (field.id == FieldId::kEtag && field.value.size() <= UINT16_MAX) {
      meta_.etag_offset = static_cast<std::uint32_t>(copier_.size() + field.name.size() + 2);
      meta_.etag_bytes = static_cast<std::uint16_t>(field.value.size());
    }
    copier_.add(field);
  }
  void content_length(std::uint64_t bytes) { copier_.add("Content-Length", bytes); }
  void date(UnixSeconds time) {
    std::array<char, kDateBytes> text{};
    write_date(time, text);
    line("Date", {text.data(), text.size()});
  }
  void finish() { meta_.head_bytes = static_cast<std::uint32_t>(copier_.size()); }

 private:
  static std::string& cleared(std::string& text) {
    text.clear();
    return text;
  }

  HeadWriter writer_;
  FieldCopier copier_;  // ends before the writer
  StoredMeta& meta_;
};

// Decides which fields of a received response may be stored at all (RFC 9111 3.1), except the
// body's length.
class Keep {
 public:
  Keep(const Fields& fields, const ResponseDirectives& directives, const HeadOptions& options)
      : hops_(fields), directives_(directives), options_(options) {}
  bool operator()(const Field& field) const noexcept {
    if (field.id == FieldId::kAge || hops_.drops(field)) return false;
    if (is_stripped(field, options_)) return false;
    return !is_listed(directives_.stripped_fields, field.name);
  }

 private:
  HopByHop hops_;
  const ResponseDirectives& directives_;
  const HeadOptions& options_;
};

// The lines of `update` that replace those of the same name.
std::vector<const Field*> replacing_lines(const ResponseHead& update, const Keep& keep,
                                          std::string_view stored_etag) {
  std::vector<const Field*> lines;
  for (const Field& field : update.fields) {
    if (!keep(field) || describes_body(field) || field.id == FieldId::kSetCookie) continue;
    // The same entity tag in a weaker form would spoil a strong one that is stored.
    if (field.id == FieldId::kEtag && weak_match(field.value, stored_etag)) continue;
    lines.push_back(&field);
  }
  return lines;
}

bool same_name(const Field& a, const Field& b) noexcept {
  return a.id == b.id && (a.id != FieldId::kOther || equals_ignoring_case(a.name, b.name));
}

// The stored lines but those that a range changes.
void copy_but(const ResponseHead& stored, FieldSet left_out, Builder& builder) {
  for (const Field& field : stored.fields) {
    if (!left_out.has(field.id)) builder.line(field);
  }
}

constexpr FieldSet kOfTheRange = {FieldId::kContentLength, FieldId::kContentRange};

}  // namespace

bool is_stripped(const Field& field, const HeadOptions& options) noexcept {
  if (field.id == FieldId::kCacheStatus && !is_structured_list(field.value)) return true;
  return (options.strip_tags && kTags.has(field.id)) || is_listed(options.strip_fields, field.name);
}

void build_stored_head(const ResponseHead& response, const ResponseDirectives& directives,
                       std::optional<std::uint64_t> body_bytes, UnixSeconds arrival,
                       const HeadOptions& options, std::string& out, StoredMeta& meta) {
  Builder builder(out, meta, response.head_size);
  builder.status_line(response.status, response.reason);
  const Keep keep(response.fields, directives, options);
  for (const Field& field : response.fields) {
    if (field.id != FieldId::kContentLength && keep(field)) builder.line(field);
  }
  if (!response.fields.has(FieldId::kDate)) builder.date(arrival);
  if (body_bytes && response.status != 204) builder.content_length(*body_bytes);
  builder.finish();
}

void build_freshened_head(std::string_view stored_head, const ResponseHead& update,
                          const ResponseDirectives& update_directives, UnixSeconds arrival,
                          const HeadOptions& options, std::string& out, StoredMeta& meta) {
  ResponseHead stored;
  read_stored_head(stored_head, stored);
  const Keep keep(update.fields, update_directives, options);
  const auto replacing = replacing_lines(update, keep, stored.fields.value(FieldId::kEtag));
  Builder builder(out, meta, stored.head_size + update.head_size);
  builder.status_line(stored.status, stored.reason);
  const bool dated = update.fields.has(FieldId::kDate);
  for (const Field& field : stored.fields) {
    const bool replaced =
        std::ranges::any_of(replacing, [&](const Field* line) { return same_name(field, *line); });
    if (!replaced && (dated || field.id != FieldId::kDate)) builder.line(field);
  }
  for (const Field* line : replacing) builder.line(*line);
  if (!dated) builder.date(arrival);
  builder.finish();
}

bool drop_stripped(const ResponseHead& stored, const ResponseDirectives& directives,
                   std::string& out, StoredMeta& meta) {
  const auto is_dropped = [&](const Field& field) {
    return is_listed(directives.stripped_fields, field.name);
  };
  if (std::ranges::none_of(stored.fields, is_dropped)) return false;
  Builder builder(out, meta, stored.head_size);
  builder.status_line(stored.status, stored.reason);
  for (const Field& field : stored.fields) {
    if (!is_dropped(field)) builder.line(field);
  }
  builder.finish();
  return true;
}

Freshened freshen(std::string_view stored_head, const ResponseHead& update,
                  const Validation& validation, const StoreOptions& store,
                  const HeadOptions& options, std::string& out) {
  const Exchange& exchange = validation.exchange;
  const UnixSeconds arrival = to_unix(exchange.response_wall);
  StoredMeta built;
  const auto withhold = [&validation](ResponseDirectives& from) {
    from.stripped_fields.insert(from.stripped_fields.end(), validation.withheld.begin(),
                                validation.withheld.end());
  };
  ResponseDirectives of_update = effective_directives(update.fields, validation.targets);
  withhold(of_update);
  build_freshened_head(stored_head, update, of_update, arrival, options, out, built);
  ResponseHead head;
  read_stored_head(out, head);
  ResponseDirectives directives = effective_directives(head.fields, validation.targets);
  leave_out(directives, store.ignored);
  // A cookie that is stored was judged when it came; what this update sets is judged below.
  StoreOptions merged = store;
  merged.set_cookie = SetCookiePolicy::kStore;
  merged.ignored.set_cookie = false;
  Freshened result;
  result.decision = may_store(validation.request, validation.target, validation.directives, head,
                              directives, arrival, merged, validation.heuristic);
  result.names = selecting_names(head.fields, validation.vary);
  const Lifetime lifetime =
      freshness_lifetime(head, directives, arrival, store.freshness, validation.heuristic);
  if (result.decision.ok() && update.fields.has(FieldId::kSetCookie) &&
      set_cookie_bars(validation.request, lifetime, store)) {
    result.decision.reason = StoreReason::kSetCookie;
  }
  result.meta = make_stored_meta(head, directives, lifetime, exchange);
  // Age is not kept in a stored head: the update's counts.
  result.meta.age_zero = exchange.response_time - corrected_initial_age(update.fields, exchange);
  set_lifetime(result.meta, lifetime, exchange.response_time);
  // Lines that the merged head has only for the requesting client are removed, though they were
  // stored before.
  if (store.ignored.set_cookie ||
      (store.set_cookie != SetCookiePolicy::kStore && !is_marked_shared(directives))) {
    directives.stripped_fields.emplace_back("set-cookie");
  }
  withhold(directives);
  std::string kept;
  if (drop_stripped(head, directives, kept, built)) out = std::move(kept);
  result.meta.head_bytes = built.head_bytes;
  result.meta.etag_offset = built.etag_offset;
  result.meta.etag_bytes = built.etag_bytes;
  return result;
}

void read_stored_head(std::string_view stored_head, ResponseHead& head) {
  // "HTTP/1.1 200 OK" CRLF, as status_line() wrote it.
  constexpr std::size_t kStatusAt = 9;
  constexpr std::size_t kReasonAt = 13;
  const std::size_t end = stored_head.find("\r\n");
  ENCORE_CHECK(end != std::string_view::npos && end >= kReasonAt, "a stored status line");
  std::uint64_t status = 0;
  ENCORE_CHECK(parse_decimal(stored_head.substr(kStatusAt, 3), status), "a stored status");
  head.status = static_cast<std::uint16_t>(status);
  head.version = Version::kHttp11;
  head.reason = stored_head.substr(kReasonAt, end - kReasonAt);
  head.head_size = stored_head.size();
  // A stored head may have more than one that is received: Date and Content-Length.
  const Limits limits{.head_bytes_max = stored_head.size(), .fields_max = stored_head.size()};
  ParseError error;
  const bool good = parse_fields(stored_head.substr(end + 2), limits, head.fields, error);
  ENCORE_CHECK(good, "stored fields are well-formed");
}

std::string_view content_type_in(std::string_view stored_head) noexcept {
  constexpr std::size_t kNameBytes = std::string_view("Content-Type").size();
  std::size_t end = stored_head.find('\n');
  while (end != std::string_view::npos) {
    const std::string_view rest = stored_head.substr(end + 1);
    end = rest.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = rest.substr(0, end);
    if (line.size() > kNameBytes && line[kNameBytes] == ':' &&
        classify_field(line.substr(0, kNameBytes)) == FieldId::kContentType) {
      return trim_ows(line.substr(kNameBytes + 1, line.size() - kNameBytes - 2));
    }
    end += static_cast<std::size_t>(rest.data() - stored_head.data());
  }
  return {};
}

void build_partial_head(const ResponseHead& stored, const ByteRange& range,
                        std::optional<std::uint64_t> length, std::string& out) {
  StoredMeta unused;
  Builder builder(out, unused, stored.head_size);
  builder.status_line(206, reason_phrase(206));
  copy_but(stored, kOfTheRange, builder);
  builder.line("Content-Range", content_range(range, length));
  builder.content_length(range.size());
}

void build_multipart_head(const ResponseHead& stored, std::string_view boundary,
                          std::uint64_t body_bytes, std::string& out) {
  StoredMeta unused;
  Builder builder(out, unused, stored.head_size);
  builder.status_line(206, reason_phrase(206));
  FieldSet left_out = kOfTheRange;
  left_out.insert(FieldId::kContentType);
  copy_but(stored, left_out, builder);
  std::string type = "multipart/byteranges; boundary=";
  type += boundary;
  builder.line("Content-Type", type);
  builder.content_length(body_bytes);
}

void build_unsatisfiable_head(const ResponseHead& stored, std::uint64_t length, std::string& out) {
  constexpr FieldSet kSent = {FieldId::kDate, FieldId::kEtag, FieldId::kLastModified};
  StoredMeta unused;
  Builder builder(out, unused, stored.head_size);
  builder.status_line(416, reason_phrase(416));
  for (const Field& field : stored.fields) {
    if (kSent.has(field.id)) builder.line(field);
  }
  builder.line("Content-Range", unsatisfied_content_range(length));
  builder.line("Content-Length", "0");
}

void build_whole_head(const ResponseHead& partial, std::uint64_t length, std::string& out) {
  StoredMeta unused;
  Builder builder(out, unused, partial.head_size);
  builder.status_line(200, reason_phrase(200));
  copy_but(partial, kOfTheRange, builder);
  builder.content_length(length);
}

void build_not_modified(const ResponseHead& stored, std::string& out) {
  constexpr FieldSet kSent = {FieldId::kCacheControl,
                              FieldId::kCdnCacheControl,
                              FieldId::kContentLocation,
                              FieldId::kDate,
                              FieldId::kEtag,
                              FieldId::kExpires,
                              FieldId::kVary};
  StoredMeta unused;
  Builder builder(out, unused, stored.head_size);
  builder.status_line(304, reason_phrase(304));
  const bool has_etag = stored.fields.has(FieldId::kEtag);
  for (const Field& field : stored.fields) {
    const bool sent = kSent.has(field.id) || (field.id == FieldId::kLastModified && !has_etag);
    if (sent) builder.line(field);
  }
}

}  // namespace encore::http
