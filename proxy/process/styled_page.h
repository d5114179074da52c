// Pages of the admin listener, apart from the live one: its style and frame around a body, no
// script, and a policy that allows nothing but that style. Any thread.
#pragma once

#include <string_view>

#include "proxy/admin/admin_server.h"

namespace encore::server {

struct StyledPage {
  int status = 200;
  std::string_view title;  // also its heading
  std::string_view body;   // HTML
  // Seconds until it is loaded again; 0: it is not.
  unsigned refresh_seconds = 0;
};
AdminResponse make_page(const StyledPage& page);

}  // namespace encore::server
