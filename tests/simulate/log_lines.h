// The access log of a simulated proxy: no file and no thread, its lines go to their reader.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "proxy/observe/log_writer.h"

namespace encore::simulate {

// A log that passes on what workers hand over, each time whole lines. One at a time. `on_lines` is
// kept until the next one is made.
std::unique_ptr<server::LogWriter> make_log(std::function<void(std::string_view lines)> on_lines);

}  // namespace encore::simulate
