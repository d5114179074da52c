// Parts of bodies (RFC 9110 14).
#include <cstdio>

#include "tests/fuzz/proxy/judged_fields.h"
#include "tests/fuzz/proxy/oracle.h"

namespace encore::proxyfuzz {

// RFC 9110 13.2.2: conditions come before the range. Only for answers of the proxy's own, which
// were not made for this request.
void Oracle::judge_condition(const Case& at) {
  const Request& request = at.request;
  const Answer& answer = at.answer;
  const bool is_sent = answer.status == 200 || answer.status == 206;
  if (at.direct() || !request.conditional || !is_sent) return;
  // While a body comes that may turn out to be another than its digest says, nothing is confirmed.
  if (request.url->blob != nullptr) return;
  const Content& content = *answer.content;
  const Field* const match = find(request.fields, "If-None-Match");
  if (match == nullptr) {
    // Within the very second more may have been changed (8.8.2.2).
    const bool modified =
        content.last_modified == 0 || content.last_modified >= request.modified_since;
    // A date in the future by the proxy's clock is no date to it.
    if (!modified && request.modified_since != 0 && world_.clock_error == 0) {
      fault(at, "condition", "a response in spite of If-Modified-Since");
    }
    return;
  }
  const auto opaque = [](std::string_view tag) {
    return tag.starts_with("W/") ? tag.substr(2) : tag;
  };
  for (const std::string& tag : members(request.fields, "If-None-Match")) {
    if (tag != "*" && (content.etag.empty() || opaque(tag) != opaque(content.etag))) continue;
    fault(at, "condition", "a response in spite of If-None-Match");
  }
}

// Which bytes must follow.
void Oracle::set_bounds(const Case& at) {
  Answer& answer = at.answer;
  if (answer.body.kind() == BodyReader::Kind::kNone) return;
  answer.expected = answer.content->bytes;
  if (answer.status == 416)
    answer.expected = answer.event->status == 416 ? 0 : answer.content_bytes;
  if (answer.status != 206) return;
  const Field* range = find(answer.head.fields, "Content-Range");
  if (range == nullptr) {
    answer.multipart = true;
    return;
  }
  unsigned long long first = 0;
  unsigned long long last = 0;
  const unsigned long long size = answer.content->bytes;
  const std::string told =
      range->value.substr(std::min(range->value.find('/'), range->value.size()));
  if (std::sscanf(range->value.c_str(), "bytes %llu-%llu/", &first, &last) != 2 || first > last ||
      last >= size || (told != "/*" && told != "/" + std::to_string(size))) {
    fault(at, "range", "a wrong Content-Range");
    return;
  }
  // RFC 9110 14.4: only where the origin has not said it.
  if (told == "/*" &&
      (answer.event->status != 200 || find(answer.event->fields, "Content-Length") != nullptr)) {
    fault(at, "range", "a length that the origin has said is not told");
  }
  if (told == "/*") world_.count("answer: a part of an unknown length");
  // RFC 9110 13.1.5: a part only of what the client has the rest of.
  if (!at.request.if_range.empty() && at.request.if_range != answer.content->etag) {
    fault(at, "range", "a part in spite of If-Range");
  }
  answer.offset = first;
  answer.expected = last - first + 1;
  const std::string& asked = at.request.range;
  unsigned long long wanted = 0;
  unsigned long long wanted_last = 0;
  if (asked.find(',') == std::string::npos &&
      std::sscanf(asked.c_str(), "bytes=%llu-%llu", &wanted, &wanted_last) == 2 &&
      last != std::min<unsigned long long>(wanted_last, size - 1)) {
    fault(at, "range", "a part that ends elsewhere than was asked for");
  }
  if (!asked.starts_with("bytes=-") && asked.find(',') == std::string::npos &&
      std::sscanf(asked.c_str(), "bytes=%llu-", &wanted) == 1 && wanted != first) {
    fault(at, "range", "a part that was not asked for");
  }
}

// RFC 9110 14.6.
void Oracle::judge_parts(const Case& at) {
  const Field* type = find(at.answer.head.fields, "Content-Type");
  const std::size_t equals = type == nullptr ? std::string::npos : type->value.find("boundary=");
  if (equals == std::string::npos) {
    fault(at, "range", "a 206 without Content-Range and boundary");
    return;
  }
  const std::string delimiter = "--" + type->value.substr(equals + 9);
  std::string_view rest = at.answer.kept;
  while (true) {
    const std::size_t start = rest.find(delimiter);
    if (start == std::string_view::npos) {
      fault(at, "range", "a multipart body without an end");
      return;
    }
    rest.remove_prefix(start + delimiter.size());
    if (rest.starts_with("--")) return;
    Head head;
    std::string error;
    const std::size_t size = read_head(rest.substr(0, rest.find(delimiter)), head, error);
    const Field* range = find(head.fields, "Content-Range");
    unsigned long long first = 0;
    unsigned long long last = 0;
    if (size == 0 || range == nullptr ||
        std::sscanf(range->value.c_str(), "bytes %llu-%llu/", &first, &last) != 2 || last < first ||
        last >= at.answer.content->bytes || rest.size() < size + last - first + 1) {
      fault(at, "range", "a malformed part: " + std::string(rest.substr(0, 200)));
      return;
    }
    if (find_difference(at.answer.content->name, first,
                        rest.substr(size, static_cast<std::size_t>(last - first + 1))) !=
        std::string_view::npos) {
      fault(at, "bytes", "a part with other bytes: " + range->value);
      return;
    }
    rest.remove_prefix(size + static_cast<std::size_t>(last - first + 1));
    world_.count("answer: part of a multipart");
  }
}

}  // namespace encore::proxyfuzz
