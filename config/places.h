// Places: where each key of a config was set. Values.
#pragma once

#include <map>
#include <string>

namespace encore::config {

// Where keys were set: "cache.memory" to "file:line:column" or "--set cache.memory". A key that is
// not in it has its default. A list of tables is in it as such ("listen") beside its elements'
// keys.
using Places = std::map<std::string, std::string, std::less<>>;

}  // namespace encore::config
