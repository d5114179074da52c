#include "sim/cli/replay_words.h"

#include <CLI/CLI.hpp>
#include <array>
#include <sstream>
#include <utility>

#include "base/cli/program.h"
#include "sim/cli/commands.h"

namespace encore::sim {

ReplayWords::ReplayWords()
    : command_(make_replay_command()), app_(std::make_unique<CLI::App>("", "encore-sim")) {}
ReplayWords::ReplayWords(ReplayWords&& other) noexcept = default;
ReplayWords::~ReplayWords() = default;

Result<ReplayWords> ReplayWords::parse(std::vector<std::string> words) {
  ReplayWords replay;
  CLI::App* const app = replay.app_->add_subcommand(replay.command_->name());
  replay.arguments_ = std::make_unique<Arguments>(*app);
  replay.command_->declare(*replay.arguments_);
  words.insert(words.begin(), replay.command_->name());
  std::ostringstream out;
  std::ostringstream err;
  const std::array<const CLI::App*, 1> apps = {app};
  if (parse_command_line(*replay.app_, apps, std::move(words), {"", out, err})) {
    std::string message = err.str().empty() ? out.str() : err.str();
    message.erase(0, message.starts_with(": ") ? 2 : 0);
    return fail(message.substr(0, message.find('\n')));
  }
  if (auto fine = replay.command_->check_use(*replay.arguments_); !fine) {
    return std::unexpected(fine.error());
  }
  return replay;
}

Result<Outcome> ReplayWords::run(Monitor& monitor) {
  std::ostringstream unused;
  return command_->run({.monitor = monitor, .arguments = *arguments_, .out = unused});
}

}  // namespace encore::sim
