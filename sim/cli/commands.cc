#include "sim/cli/commands.h"

#include <utility>

#include "sim/cli/program.h"

namespace encore::sim {

std::vector<std::unique_ptr<Command>> all_commands() {
  std::vector<std::unique_ptr<Command>> all;
  all.push_back(make_blocks_command());
  all.push_back(make_theory_fill_command());
  for (auto& command : make_theory_commands()) {
    all.push_back(std::move(command));
  }
  for (auto& command : make_theory_grid_commands()) {
    all.push_back(std::move(command));
  }
  for (auto& command : make_theory_kind_commands()) {
    all.push_back(std::move(command));
  }
  all.push_back(make_theory_codes_command());
  for (auto& command : make_generate_commands()) {
    all.push_back(std::move(command));
  }
  all.push_back(make_stats_command());
  all.push_back(make_convert_command());
  all.push_back(make_replay_command());
  all.push_back(make_sweep_command());
  all.push_back(make_compare_command());
  all.push_back(make_policies_command());
  all.push_back(make_tune_command());
  all.push_back(make_verify_command());
  all.push_back(make_drive_command());
  return all;
}

}  // namespace encore::sim
