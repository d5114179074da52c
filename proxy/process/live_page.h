// The live page: one response that asks for nothing but this listener's own numbers. Its files are
// in page/, embedded when the program is built, with Chart.js from the distribution's package.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace encore::server {

struct LivePage {
  std::shared_ptr<const std::string> html;
  // Scripts and styles by their hashes, connections to this listener, and nothing else.
  std::string security_policy;
};

// Made when it is first asked for. Any thread.
const LivePage& live_page();

// Its style, for other pages, and what allows that in their policies.
std::string_view page_style();
const std::string& page_style_source();

}  // namespace encore::server
