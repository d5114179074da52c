#include "proxy/intake/plain_hit.h"

#include <algorithm>

namespace encore::server {

std::size_t HitLines::others_bytes_max() const {
  constexpr std::size_t kIdBytes = kRequestIdField.size() + std::string_view(": \r\n").size();
  const std::size_t added = rule_ == nullptr ? 0 : rule_->response_edits().lines().size();
  return added + http::kVaryByCodingField.size() + kIdBytes + id_.size();
}

std::size_t HitLines::write_others(char* out) const {
  char* end = out;
  const auto put = [&](std::string_view text) { end = std::ranges::copy(text, end).out; };
  if (rule_ != nullptr) put(rule_->response_edits().lines());
  if (varies_) put(http::kVaryByCodingField);
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
