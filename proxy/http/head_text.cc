#include "proxy/http/head_text.h"

#include "proxy/http/head_writer.h"

namespace encore::http {
void append_status_line(int status, std::string_view reason, std::string& out) {
  HeadWriter(out, reason.size() + 16).status_line(static_cast<unsigned>(status), reason);
}

void append_field(std::string_view name, std::string_view value, std::string& out) {
  HeadWriter(out, name.size() + value.size() + 4).field(name, value);
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
