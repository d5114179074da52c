// SourceLocations: where each key of a config was set. Values.
#pragma once

#include <map>
#include <string>

namespace encore::config {

// The places of keys that were set: "cache.memory" to "file:line:column" or "--set cache.memory".
// An absent key has its default. A list of tables has an entry of its own ("listen") in addition to
// its elements' keys.
using SourceLocations = std::map<std::string, std::string, std::less<>>;

}  // namespace encore::config
