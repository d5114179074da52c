#include "proxy/transfer/response.h"

#include <algorithm>
#include <memory>

#include "base/recycled.h"
#include "filter/hash.h"
#include "proxy/http/field_id.h"
#include "proxy/http/head_text.h"
#include "proxy/http/head_writer.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/list.h"

namespace encore::server {

std::uint64_t variant_of(std::string_view names, std::string_view variant_key) {
  if (names.empty()) return 0;
  std::string text(names);
  text += '\n';
  text += variant_key;
  return filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, text).lo;
}

namespace {

std::uint64_t read_number(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

void write_number(std::uint64_t value, std::string& out) {
  for (unsigned i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

std::string write_large_body(const LargeBody& body) {
  std::string bytes;
  write_number(body.number, bytes);
  write_number(body.length, bytes);
  return bytes;
}

std::optional<LargeBody> HeadParts::large_body() const {
  if (meta.large_bytes == 0) return std::nullopt;
  const std::string_view bytes = head.substr(head.size() - meta.tag_bytes - kLargeBodyBytes);
  return LargeBody{.number = read_number(bytes), .length = read_number(bytes.substr(8))};
}

std::uint64_t body_length_of(const store::Object& object) {
  const auto large = large_body_of(object);
  return large ? large->length : object.body_size();
}

void SharedResponse::clear() {
  // The memory of its head is used again, unless one very large head would keep it for good.
  std::string text = std::move(head);
  std::destroy_at(this);
  std::construct_at(this);
  if (text.capacity() > kReusedTextMax) return;
  text.clear();
  head = std::move(text);
}

namespace {

bool is_withheld(const http::Field& field, std::span<const std::string> withheld) {
  if (field.id == http::FieldId::kSetCookie) return true;
  return std::ranges::any_of(
      withheld, [&](const std::string& name) { return http::equals_lower(field.name, name); });
}

ValuePlace place_at(std::size_t offset, std::string_view value) {
  if (value.empty() || value.size() > UINT16_MAX) return {};
  return {.offset = static_cast<std::uint32_t>(offset),
          .bytes = static_cast<std::uint16_t>(value.size())};
}

// Written anew, or for the one who asked alone.
constexpr http::FieldSet kNotCommon = {http::FieldId::kContentLength, http::FieldId::kAge,
                                       http::FieldId::kSetCookie};

// Those that all may have, as they came. Returns the place of Content-Type.
ValuePlace write_common_fields(const http::ResponseHead& response,
                               std::span<const std::string> withheld,
                               const http::HeadOptions& options, http::HeadWriter& out) {
  ValuePlace content_type;
  const http::Field* const typed = response.fields.find(http::FieldId::kContentType);
  const http::HopByHop hop_by_hop(response.fields);
  http::FieldCopier copier(out);
  for (const http::Field& field : response.fields) {
    if (kNotCommon.has(field.id) || is_withheld(field, withheld) || hop_by_hop.drops(field) ||
        http::is_stripped(field, options)) {
      continue;
    }
    if (&field == typed) {
      content_type = place_at(copier.size() + field.name.size() + 2, field.value);
    }
    copier.add(field);
  }
  return content_type;
}

}  // namespace

std::string private_lines(const http::ResponseHead& response, std::span<const std::string> withheld,
                          const http::HeadOptions& options) {
  std::string lines;
  if (withheld.empty() && !response.fields.has(http::FieldId::kSetCookie)) return lines;
  const http::HopByHop hop_by_hop(response.fields);
  for (const http::Field& field : response.fields) {
    if (!is_withheld(field, withheld) || field.id == http::FieldId::kContentLength ||
        hop_by_hop.drops(field) || http::is_stripped(field, options)) {
      continue;
    }
    http::append_field(field.name, field.value, lines);
  }
  return lines;
}

CommonHead build_forward_head(const http::ResponseHead& response, const ForwardHead& more,
                              const http::HeadOptions& options, std::string& text) {
  text.clear();
  http::HeadWriter out(text, response.head_size + 96);
  out.status_line(response.status, response.reason);
  CommonHead common;
  common.content_type = write_common_fields(response, more.withheld, options, out);
  if (more.length) out.field("Content-Length", *more.length);
  // RFC 9110 6.6.1: a recipient with a clock supplies the Date that an origin left out.
  if (!response.fields.has(http::FieldId::kDate)) out.field("Date", more.http_date);
  common.bytes = out.size();
  // To those who waited it is as old as it is when they get it.
  response.fields.for_each(http::FieldId::kAge, [&out](const http::Field& field) {
    out.field(field.name, field.value);
  });
  out.text(private_lines(response, more.withheld, options));
  return common;
}

void place_etag(std::string_view head, std::string_view etag, http::StoredMeta& meta) {
  const std::size_t at = etag.empty() ? std::string_view::npos : head.find(etag);
  if (at == std::string_view::npos || etag.size() > UINT16_MAX) return;
  meta.etag_offset = static_cast<std::uint32_t>(at);
  meta.etag_bytes = static_cast<std::uint16_t>(etag.size());
}

void place_content_type(std::string_view head, ObjectMeta& meta) {
  const std::string_view type = http::content_type_in(head);
  const auto at = type.empty() ? 0 : static_cast<std::size_t>(type.data() - head.data());
  const ValuePlace place = place_at(at, type);
  meta.type_offset = place.offset;
  meta.type_bytes = place.bytes;
}

bool forwardable_trailers(std::string_view raw, const http::Limits& limits,
                          const std::function<bool(const http::Field&)>& drops, std::string& out) {
  out.clear();
  if (raw.empty()) return true;
  http::Fields fields;
  http::ParseError error;
  if (!http::parse_fields(raw, limits, fields, error)) return false;
  for (const http::Field& field : fields) {
    if (!http::allowed_in_trailer(field) || drops(field)) continue;
    http::append_field(field.name, field.value, out);
  }
  return true;
}

}  // namespace encore::server
