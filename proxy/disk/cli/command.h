// Command: one sub-command of `encore disk`. The frame (program.h) reads the command line and turns
// what run() returns into an exit code.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "base/cli/arguments.h"
#include "base/cli/monitor.h"
#include "base/error.h"
#include "proxy/disk/cli/inspected_disk.h"
#include "proxy/disk/format.h"

namespace encore::disk {

// Environment of a command, in addition to its own options.
struct Context {
  Monitor& monitor;
  WallSeconds now;
  std::ostream& out;  // the caller of the command checks it for errors
  std::ostream& err;  // for what is worth a word and no error
};

// The verdict of several disks is the worst of theirs.
enum class Verdict : std::uint8_t {
  kFine,        // exit 0
  kDamaged,     // exit 1
  kUnreadable,  // exit 2; the command has said why
};

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;   // one line
  virtual std::string examples() const = 0;  // command lines, one a line
  virtual void declare(Arguments& arguments) = 0;
  // Errors: wrong use, or nothing can be done without the disk that cannot be read (exit 2).
  virtual Result<Verdict> run(const Context& context) = 0;
};

// Calls `look` with each disk that can be opened. Returns the worst verdict of all, including the
// disks that cannot be opened. An error of one disk is reported, and the next one follows.
using LookAt = std::function<Result<Verdict>(const std::string& path, const InspectedDisk& disk)>;
Verdict look_at_each(const std::vector<std::string>& paths, const std::string& command,
                     const Context& context, const LookAt& look);

std::unique_ptr<Command> make_list_command();
std::unique_ptr<Command> make_verify_command();
std::unique_ptr<Command> make_stat_command();

}  // namespace encore::disk
