#include "proxy/http/coded_head.h"

#include <algorithm>
#include <array>

#include "proxy/http/head_text.h"
#include "proxy/http/validators.h"

namespace encore::http {
namespace {

constexpr FieldSet kOfTheIdentity = {FieldId::kContentLength, FieldId::kAcceptRanges};
constexpr std::string_view kWeak = "W/";

void write_etag(const Field& field, std::string& out, StoredMeta& meta) {
  out += field.name;
  out += ": ";
  meta.etag_offset = static_cast<std::uint32_t>(out.size());
  if (is_strong_etag(field.value)) out += kWeak;
  out += field.value;
  meta.etag_bytes = static_cast<std::uint16_t>(out.size() - meta.etag_offset);
  out += "\r\n";
}

}  // namespace

bool varies_by_coding(const Fields& response) noexcept {
  return response.list_has(FieldId::kVary, "accept-encoding") ||
         response.list_has(FieldId::kVary, "*");
}

bool is_body_digest(const Field& field) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"content-md5", "digest", "repr-digest",
                                                      "content-digest"};
  return field.id == FieldId::kOther && std::ranges::any_of(kNames, [&](std::string_view name) {
           return equals_lower(field.name, name);
         });
}

void build_coded_head(const ResponseHead& response, std::string_view coding,
                      std::optional<std::uint64_t> length, std::string& out, StoredMeta& meta) {
  out.clear();
  append_status_line(response.status, response.reason, out);
  meta.etag_offset = 0;
  meta.etag_bytes = 0;
  bool says_vary = varies_by_coding(response.fields);
  for (const Field& field : response.fields) {
    if (kOfTheIdentity.has(field.id) || is_body_digest(field)) continue;
    if (field.id == FieldId::kEtag && field.value.size() <= UINT16_MAX - kWeak.size()) {
      write_etag(field, out, meta);
    } else if (field.id == FieldId::kVary && !says_vary) {
      says_vary = true;
      append_field(field.name, std::string(field.value) + ", Accept-Encoding", out);
    } else {
      append_field(field.name, field.value, out);
    }
  }
  if (!says_vary) out += kVaryByCodingField;
  append_field("Content-Encoding", coding, out);
  if (length) append_field("Content-Length", std::to_string(*length), out);
  meta.head_bytes = static_cast<std::uint32_t>(out.size());
  meta.flags &= static_cast<std::uint16_t>(~StoredMeta::kStrongEtag);
}

void weaken_etag(std::string& head) {
  std::size_t at = head.find("\r\n");
  while (at != std::string::npos && at + 2 < head.size()) {
    const std::size_t begin = at + 2;
    const std::size_t colon = head.find(':', begin);
    at = head.find("\r\n", begin);
    if (colon == std::string::npos || at == std::string::npos || colon > at) continue;
    if (!equals_lower(std::string_view(head).substr(begin, colon - begin), "etag")) continue;
    const std::size_t value = head.find_first_not_of(" \t", colon + 1);
    if (value < at && head[value] == '"') {
      head.insert(value, kWeak);
      at += kWeak.size();
    }
  }
}

}  // namespace encore::http
