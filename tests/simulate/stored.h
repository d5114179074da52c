// Stored responses keep what they must have, whatever became of them: the tag of their URL. One
// thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "proxy/process/proxy.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::simulate {

// "/u12" of the key of a URL in any realm; empty: there is none in it.
std::string_view path_of_key(std::string_view key);

// Each response that memory holds of a URL with a tag has that tag. Between turns.
void look_at_tags(server::Proxy& proxy, const proxyfuzz::World& world,
                  const std::function<void(const std::string& what)>& on_fault);

}  // namespace encore::simulate
