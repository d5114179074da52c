// Asks a running proxy by its admin listener: its status, how it would handle a request, and who
// has refused the certificate of [intercept]. Blocks.
#pragma once

#include <string>

#include "base/error.h"
#include "config/config.h"
#include "proxy/process/explain.h"

namespace encore::server {

// The text of /api/explain of the proxy whose config this is. With admin.token_file its token is
// shown. Errors: no admin listener, or one that does not answer, or refuses.
Result<std::string> ask_running(const config::Config& config, const Explained& asked);

// The text of /api/status. Errors as above.
Result<std::string> ask_status(const config::Config& config);

// Lines for people. Errors as above.
Result<std::string> list_rejected(const config::Config& config);
// Forgets those of this client and host, each where it is not empty; how many they were, as the
// admin listener says it.
Result<std::string> clear_rejected(const config::Config& config, const std::string& client,
                                   const std::string& host);

}  // namespace encore::server
