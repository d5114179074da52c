// Asks a running proxy, by its admin listener, what becomes of a request. Blocks.
#pragma once

#include <string>

#include "base/error.h"
#include "config/config.h"
#include "proxy/process/explain.h"

namespace encore::server {

// The text of /api/explain of the proxy whose config this is. With admin.token_file its token is
// shown. Errors: no admin listener, or one that does not answer, or refuses.
Result<std::string> ask_running(const config::Config& config, const Explained& asked);

}  // namespace encore::server
