// The live page: one response that asks for nothing but this listener's own numbers. Its files are
// in page/, embedded when the program is built, with Chart.js from the distribution's package.
#pragma once

#include <memory>
#include <string>

namespace encore::server {

struct LivePage {
  std::shared_ptr<const std::string> html;
  // Scripts and styles by their hashes, connections to this listener, and nothing else.
  std::string security_policy;
};

// Made when it is first asked for. Any thread.
const LivePage& live_page();

}  // namespace encore::server
