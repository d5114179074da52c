// The keys of the configuration that cause a refusal, so that a user of the proxy knows which one
// to have changed. Pure, thread-safe. Why only clients of forward listeners see them:
// docs/decisions/0317.
#pragma once

#include <string>
#include <string_view>

#include "config/config.h"

namespace encore::server {

// Returns the keys that decide a detail of Cache-Status: "forward.connect_ports". Empty: none does.
std::string_view keys_of_refusal(std::string_view detail);

// That as a part of a sentence, to stand behind the detail in an answer's body. Clients of forward
// listeners are those whose proxy it is; those of reverse listeners are strangers, and told nothing
// of how it is configured, but for the key of purges.
std::string named_keys(config::Mode mode, std::string_view detail);

}  // namespace encore::server
