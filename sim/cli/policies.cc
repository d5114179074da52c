// encore-sim policies: the eviction policies and their parameters.
#include "cache/eviction_name.h"
#include "sim/cli/commands.h"

namespace encore::sim {
namespace {

class PoliciesCommand final : public Command {
 public:
  std::string name() const override { return "policies"; }
  std::string summary() const override {
    return "List the eviction policies, and their parameters with defaults and accepted values";
  }
  std::string example() const override { return "encore-sim policies"; }
  void declare(Arguments& /*arguments*/) override {}

  Result<Outcome> run(const Context& /*context*/) override {
    Table table{.key = "rows",
                .title = "",
                .columns = {{"eviction", "eviction"},
                            {"parameter", "parameter"},
                            {"default", "default"},
                            {"accepted", "accepted"},
                            {"meaning", "meaning"}},
                .rows = {}};
    for (std::size_t i = 0; i < cache::kEvictionPolicyCount; ++i) {
      const auto policy = static_cast<cache::EvictionPolicy>(i);
      const auto parameters = cache::parameters_of(policy);
      if (parameters.empty()) {
        table.rows.push_back({{"eviction", std::string(to_string(policy))}});
      }
      for (const cache::PolicyParameter& parameter : parameters) {
        table.rows.push_back({{"eviction", std::string(to_string(policy))},
                              {"parameter", std::string(parameter.name)},
                              {"default", cache::parameter_text(parameter, parameter.initial)},
                              {"accepted", cache::range_text(parameter)},
                              {"meaning", std::string(parameter.meaning)}});
      }
    }
    Outcome outcome;
    outcome.report.tables.push_back(std::move(table));
    return outcome;
  }
};

}  // namespace

std::unique_ptr<Command> make_policies_command() { return std::make_unique<PoliciesCommand>(); }

}  // namespace encore::sim
