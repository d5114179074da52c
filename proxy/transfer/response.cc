#include "proxy/transfer/response.h"

#include <algorithm>
#include <memory>

#include "base/recycled.h"
#include "proxy/http/field_id.h"
#include "proxy/http/head_text.h"
#include "proxy/http/head_writer.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/list.h"

namespace encore::server {
void SharedResponse::clear() {
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

// Those that all may have, as they came.
void write_common_fields(const http::ResponseHead& response, std::span<const std::string> withheld,
                         const http::HeadOptions& options, http::HeadWriter& out) {
  const http::HopByHop hop_by_hop(response.fields);
  http::FieldCopier copier(out);
  for (const http::Field& field : response.fields) {
    if (field.id == http::FieldId::kContentLength || field.id == http::FieldId::kAge ||
        is_withheld(field, withheld) || hop_by_hop.drops(field) ||
        http::is_stripped(field, options)) {
      continue;
    }
    copier.add(field);
  }
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

std::size_t build_forward_head(const http::ResponseHead& response, const ForwardHead& more,
                               const http::HeadOptions& options, std::string& text) {
  text.clear();
  http::HeadWriter out(text, response.head_size + 96);
  out.status_line(response.status, response.reason);
  write_common_fields(response, more.withheld, options, out);
  if (more.length) out.field("Content-Length", *more.length);
  // RFC 9110 6.6.1: a recipient with a clock supplies the Date that an origin left out.
  if (!response.fields.has(http::FieldId::kDate)) out.field("Date", more.http_date);
  const std::size_t common_bytes = out.size();
  // To those who waited it is as old as it is when they get it.
  response.fields.for_each(http::FieldId::kAge, [&out](const http::Field& field) {
    out.field(field.name, field.value);
  });
  out.text(private_lines(response, more.withheld, options));
  return common_bytes;
}

void place_etag(std::string_view head, std::string_view etag, http::StoredMeta& meta) {
  const std::size_t at = etag.empty() ? std::string_view::npos : head.find(etag);
  if (at == std::string_view::npos || etag.size() > UINT16_MAX) return;
  meta.etag_offset = static_cast<std::uint32_t>(at);
  meta.etag_bytes = static_cast<std::uint16_t>(etag.size());
}

void place_content_type(std::string_view head, ObjectMeta& meta) {
  meta.type_offset = 0;
  meta.type_bytes = 0;
  http::ResponseHead read;
  http::read_stored_head(head, read);
  const std::string_view type = read.fields.value(http::FieldId::kContentType);
  if (type.empty()) return;
  const auto at = static_cast<std::size_t>(type.data() - head.data());
  if (at > UINT16_MAX || type.size() > UINT16_MAX) return;
  meta.type_offset = static_cast<std::uint16_t>(at);
  meta.type_bytes = static_cast<std::uint16_t>(type.size());
}

std::string tags_in(const http::Fields& fields, const std::vector<std::string>& names) {
  std::string tags;
  const auto add = [&tags](std::string_view tag) {
    if (tag.empty()) return;
    tags += tag;
    tags += '\n';
  };
  for (const http::Field& field : fields) {
    const bool listed = std::ranges::any_of(names, [&](const std::string& name) {
      return http::equals_ignoring_case(field.name, name);
    });
    if (!listed) continue;
    const std::string_view separators = field.id == http::FieldId::kCacheTag ? "," : " \t";
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::string_view tag = rest.substr(0, rest.find_first_of(separators));
      rest.remove_prefix(std::min(tag.size() + 1, rest.size()));
      add(http::trim_ows(tag));
    }
  }
  return tags;
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
