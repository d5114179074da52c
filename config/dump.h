// The other directions of the schema: a Config as TOML, the documentation, and what a reload can
// not change. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "config/key.h"

namespace encore::config {

// A complete TOML file with every key, which parse_config() reads back to an equal Config; but a
// secret (admission.seed) is left empty, with its fingerprint as a comment.
std::string dump_config(const Config& config);

// A key with its value in force.
struct ShownValue {
  std::string path;  // "cache.memory", "listen.0.address"
  std::string toml;  // "\"256MiB\"", "[443, 8443]"; empty for a secret
  std::string text;  // the same for people and scripts: 256MiB
  bool is_secret = false;
};
// The keys of the path: one key, all of a section ("cache", "listen.0"), or for "" all. Keys that
// are not set are left out. Errors: there is no such key; the message has the nearest one.
Result<std::vector<ShownValue>> show_config(const Config& config, std::string_view path);
// The paths of all keys, with the elements of lists that there are, and those of the first one.
std::vector<std::string> config_paths(const Config& config);

// docs/CONFIG.md.
std::string document_config();

// The manual page encore.toml(5), in mdoc(7). `date` is its date, as "November 28, 2026".
std::string config_manual(std::string_view date);

// A key that differs and that a reload cannot change.
struct ReloadBlocker {
  std::string path;  // "cache.shards"
  Apply apply = Apply::kUpgrade;
  std::string_view reason;
};

// Empty: a reload from `running` to `wanted` is complete.
std::vector<ReloadBlocker> reload_blockers(const Config& running, const Config& wanted);

// Tells how they can be changed, and the reason of each. REQUIRES: there are some.
std::string blockers_text(const std::vector<ReloadBlocker>& blockers);

}  // namespace encore::config
