#include "proxy/settings/effective_client.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

#include "proxy/http/list.h"

namespace encore::server {
namespace {

using http::FieldId;

// "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80". Nothing: it is
// none of them, as "unknown" and "_hidden" are not.
std::optional<net::Address> parse_node(std::string_view text) {
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    port = text.substr(end + 1);
    text = text.substr(1, end - 1);
    if (text.find(':') == std::string_view::npos) return std::nullopt;
  } else if (std::ranges::count(text, ':') == 1) {
    const std::size_t colon = text.find(':');
    port = text.substr(colon);
    text = text.substr(0, colon);
  }
  std::uint16_t number = 0;
  if (!port.empty()) {
    const char* const last = port.data() + port.size();
    const auto [end, error] = std::from_chars(port.data() + 1, last, number);
    if (port.front() != ':' || error != std::errc{} || end != last) return std::nullopt;
  }
  if (text.find_first_of("[]%") != std::string_view::npos) return std::nullopt;
  auto address = net::Address::parse_ip(text, number);
  return address ? std::optional(address->canonical()) : std::nullopt;
}

// The members of all lines of a field, read from the last to the first. In X-Forwarded-For a
// quotation mark means nothing: so one that a client has sent hides nothing behind it.
class MembersFromEnd {
 public:
  MembersFromEnd(const http::Fields& fields, FieldId id)
      : id_(id), first_(fields.begin()), line_(fields.end()) {}
  // False at the beginning.
  bool next(std::string_view& member) {
    while (true) {
      while (rest_.empty()) {
        if (line_ == first_) return false;
        --line_;
        if (line_->id == id_) rest_ = line_->value;
      }
      const std::size_t comma = rest_.rfind(',');
      const std::size_t begin = comma == std::string_view::npos ? 0 : comma + 1;
      member = http::trim_ows(rest_.substr(begin));
      rest_ = rest_.substr(0, begin == 0 ? 0 : comma);
      if (!member.empty()) return true;
    }
  }

 private:
  FieldId id_;
  const http::Field* first_;
  const http::Field* line_;
  std::string_view rest_;
};

// One element of Forwarded: pairs between semicolons, of which two are read.
struct Element {
  std::optional<net::Address> client;
  bool secure = false;
};

// The pairs of an element, semicolons in quoted strings left alone. False where it is malformed or
// says one thing twice.
bool read_element(std::string_view text, Element& element) {
  bool has_for = false;
  bool has_proto = false;
  std::string value;
  while (!text.empty()) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view name = http::trim_ows(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    std::size_t end = 0;
    bool quoted = false;
    for (; end < text.size() && (quoted || text[end] != ';'); ++end) {
      if (text[end] == '"') quoted = !quoted;
      if (text[end] == '\\' && quoted) ++end;
    }
    end = std::min(end, text.size());
    const std::string_view written = http::trim_ows(text.substr(0, end));
    if (written.starts_with('"')) {
      if (!http::unquote(written, value)) return false;
    } else {
      value = written;
      if (value.find('"') != std::string::npos) return false;
    }
    if (http::equals_lower(name, "for")) {
      if (has_for) return false;
      has_for = true;
      element.client = parse_node(value);
    } else if (http::equals_lower(name, "proto")) {
      if (has_proto) return false;
      has_proto = true;
      element.secure = http::equals_lower(value, "https");
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return has_for;
}

// From the nearest proxy's to the farthest; at most one more than are checked.
std::vector<Element> read_forwarded(const http::Fields& fields) {
  std::vector<Element> elements;
  fields.for_each_member(FieldId::kForwarded, [&](std::string_view member) {
    Element element;
    if (!read_element(member, element)) element = {};
    elements.push_back(element);
  });
  std::ranges::reverse(elements);
  return elements;
}

std::vector<Element> read_x_forwarded(const http::Fields& fields) {
  std::vector<Element> elements;
  MembersFromEnd members(fields, FieldId::kXForwardedFor);
  std::string_view member;
  while (elements.size() <= kHopsMax && members.next(member)) {
    elements.push_back({.client = parse_node(member)});
  }
  MembersFromEnd schemes(fields, FieldId::kXForwardedProto);
  if (!elements.empty() && schemes.next(member)) {
    elements.front().secure = http::equals_lower(member, "https");
  }
  return elements;
}

}  // namespace

net::Address believed(const net::Address& named, const net::Address& speaker) {
  if (named.is_unspecified() || named.is_multicast()) return {};
  if (named.is_loopback() && !speaker.is_loopback()) return {};
  return named;
}

EffectiveClient find_effective_client(const ListenerPolicy& policy, const net::Address& from,
                                      const http::Fields& fields, std::vector<net::Address>* hops) {
  EffectiveClient sender{.client = from};
  if (!policy.trusts(from)) return sender;
  const bool x_forwarded = policy.trusted_field == config::TrustedField::kXForwardedFor;
  const std::vector<Element> elements =
      x_forwarded ? read_x_forwarded(fields) : read_forwarded(fields);
  // It speaks for itself.
  if (elements.empty()) return sender;
  sender.through_proxy = true;
  sender.secure = elements.front().secure;
  std::size_t count = 0;
  for (const Element& element : elements) {
    if (hops != nullptr) hops->insert(hops->begin(), sender.client);
    sender.client = element.client && count++ < kHopsMax ? believed(*element.client, sender.client)
                                                         : net::Address();
    if (!policy.trusts(sender.client) || is_unidentified(sender.client)) break;
  }
  return sender;
}

}  // namespace encore::server
