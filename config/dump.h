// The other directions of the schema: a Config as TOML, the documentation, and what a reload can
// not change. Pure functions, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace encore::config {

// A complete TOML file with every key, which parse_config() reads back to an equal Config; but a
// secret (admission.seed) is left empty, with its fingerprint as a comment.
std::string dump_config(const Config& config);

// docs/CONFIG.md.
std::string document_config();

// The keys that differ and that only a restart can change ("cache.shards"). Empty: a reload from
// `running` to `wanted` is complete.
std::vector<std::string> reload_blockers(const Config& running, const Config& wanted);

}  // namespace encore::config
