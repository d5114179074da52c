// The program of this process as it was started, and how it is started once more: from the same
// path, where a newer version may lie by now, with the same arguments.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "proxy/net/socket.h"
#include "proxy/upgrade/channel.h"

namespace encore::upgrade {

struct Program {
  std::string path;  // absolute, with its symbolic links
  std::vector<std::string> arguments;

  // To be called at the start, before the directory changes or the file is replaced.
  static Program of(int argc, char** argv);
};

// Starts it; it inherits standard input, output and error, and `channel`, which it finds with
// take_inherited(). Returns its process id; the caller reaps it (net::reap()). Errors show the
// path.
Result<pid_t> start(const Program& program, const Channel& channel);

// The channel that start() has given to this process; nothing: it was started otherwise. The second
// call finds nothing, nor do programs that this process starts.
std::optional<Channel> take_inherited();

}  // namespace encore::upgrade
