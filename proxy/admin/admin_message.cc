#include "proxy/admin/admin_message.h"

#include <algorithm>

#include "base/check.h"
#include "proxy/http/list.h"

namespace encore::server {

std::string_view AdminRequest::field(std::string_view name) const {
  const auto at = std::ranges::find_if(
      fields, [&](const auto& f) { return http::equals_ignoring_case(f.first, name); });
  return at == fields.end() ? std::string_view() : std::string_view(at->second);
}

std::size_t AdminRequest::field_count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      fields, [&](const auto& f) { return http::equals_ignoring_case(f.first, name); }));
}

AdminReply::~AdminReply() {
  if (send_) send({.status = 500, .fields = {}, .body = "500 Internal Server Error\n"});
}

void AdminReply::send(AdminResponse response) {
  ENCORE_CHECK(send_, "a request is answered once");
  std::exchange(send_, nullptr)(std::move(response));
}

}  // namespace encore::server
