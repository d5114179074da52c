// The commands of encore-sim, one .cc each.
#pragma once

#include <memory>
#include <vector>

#include "sim/cli/command.h"

namespace encore::sim {

std::unique_ptr<Command> make_blocks_command();
std::unique_ptr<Command> make_theory_fill_command();
std::unique_ptr<Command> make_theory_codes_command();
// size, capacity, pair, ring.
std::vector<std::unique_ptr<Command>> make_theory_commands();
// table, layouts.
std::vector<std::unique_ptr<Command>> make_theory_grid_commands();
// scalable, counting, union, kinds.
std::vector<std::unique_ptr<Command>> make_theory_kind_commands();
// One for each pattern.
std::vector<std::unique_ptr<Command>> make_generate_commands();
std::unique_ptr<Command> make_stats_command();
std::unique_ptr<Command> make_convert_command();
std::unique_ptr<Command> make_replay_command();
std::unique_ptr<Command> make_sweep_command();
std::unique_ptr<Command> make_compare_command();
std::unique_ptr<Command> make_policies_command();
std::unique_ptr<Command> make_tune_command();
std::unique_ptr<Command> make_verify_command();
std::unique_ptr<Command> make_drive_command();

}  // namespace encore::sim
