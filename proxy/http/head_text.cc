#include "proxy/http/head_text.h"

#include <cstring>

namespace encore::http {
namespace {

char* put(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

}  // namespace

void append_status_line(int status, std::string_view reason, std::string& out) {
  out += "HTTP/1.1 ";
  out += std::to_string(status);
  out += ' ';
  out += reason;
  out += "\r\n";
}

// The callback is given the room that there is, which may be more than was asked for: what was
// written decides the size.
void append_field(std::string_view name, std::string_view value, std::string& out) {
  const std::size_t begin = out.size();
  out.resize_and_overwrite(begin + name.size() + value.size() + 4, [&](char* text, std::size_t) {
    char* end = put(text + begin, name);
    end = put(end, ": ");
    end = put(end, value);
    end = put(end, "\r\n");
    return static_cast<std::size_t>(end - text);
  });
}

void copy_head_without(std::string_view head, FieldSet left_out, std::string& out) {
  bool first = true;
  while (!head.empty()) {
    const std::size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end == std::string_view::npos ? end : end + 2);
    head.remove_prefix(line.size());
    if (!first) {
      const FieldId id = classify_field(line.substr(0, line.find(':')));
      if (id != FieldId::kOther && left_out.has(id)) continue;
    }
    first = false;
    out += line;
  }
}

}  // namespace encore::http
