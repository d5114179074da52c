#include "proxy/intake/plain_hit.h"

#include <cstring>

namespace encore::server {

std::size_t HitLines::write_others(char* out) const {
  char* end = out;
  const auto put = [&](std::string_view text) {
    std::memcpy(end, text.data(), text.size());
    end += text.size();
  };
  for (const std::string_view lines : {further_, vary_}) put(lines);
  if (!id_.empty()) {
    put(kRequestIdField);
    put(": ");
    put(id_);
    put("\r\n");
  }
  return static_cast<std::size_t>(end - out);
}

void set_unsent(RequestRecord& record) {
  record.outcome = Outcome::kClientAborted;
  record.detail = "reset";
  record.connection = ClientConnectionEnd::kCut;
  record.sent_bytes = record.body_bytes = 0;
}

}  // namespace encore::server
