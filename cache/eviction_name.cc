#include "cache/eviction_name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cache/eviction.h"
#include "cache/miss_cost.h"

namespace encore::cache {
namespace {

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// Returns the names behind `lead`, and which of them was meant.
std::string choices(std::string_view word, std::span<const std::string_view> names) {
  std::string text;
  if (const std::string_view near = nearest(word, names); !near.empty()) {
    text += ", did you mean " + quoted(near) + "?";
  }
  text += text.empty() ? ", accepted:" : " Accepted:";
  for (const std::string_view name : names) {
    text += ' ';
    text += name;
  }
  return text;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::unexpected<Error> refused(std::string_view policy, const PolicyParameter& parameter,
                               std::string_view text) {
  return fail(std::string(policy) + "(" + std::string(parameter.name) + "=" + std::string(text) +
              "), accepted: " + range_text(parameter));
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc()) {  // 1e-300
    end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  }
  return {text.data(), end};
}

Result<double> parse_value(std::string_view policy, const PolicyParameter& parameter,
                           std::string_view text) {
  if (parameter.kind == PolicyParameter::Kind::kChoice) {
    const auto found = std::ranges::find(parameter.names, text);
    return found != parameter.names.end()
               ? Result<double>(static_cast<double>(found - parameter.names.begin()))
               : refused(policy, parameter, text);
  }
  const bool percent = parameter.kind == PolicyParameter::Kind::kShare && text.ends_with('%');
  const std::string_view digits = trimmed(percent ? text.substr(0, text.size() - 1) : text);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  value /= percent ? 100 : 1;
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  const bool is_whole =
      parameter.kind != PolicyParameter::Kind::kCount || value == std::floor(value);
  if (!is_number || !is_whole || !(value >= parameter.min && value <= parameter.max)) {
    return refused(policy, parameter, text);
  }
  return value;
}

// "small=0.2"
Result<void> parse_setting(NamedEviction& named, std::string_view text) {
  const std::string_view policy = to_string(named.policy);
  const std::span<const PolicyParameter> parameters = parameters_of(named.policy);
  const std::size_t equals = text.find('=');
  const std::string_view name = trimmed(text.substr(0, equals));
  if (parameters.empty()) {
    return fail(std::string(policy) + " has no parameters, not " + quoted(name));
  }
  std::vector<std::string_view> names;
  std::size_t number = parameters.size();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    names.push_back(parameters[i].name);
    number = parameters[i].name == name ? i : number;
  }
  if (number == parameters.size()) {
    return fail(std::string(policy) + " has no parameter " + quoted(name) + choices(name, names));
  }
  if (named.values.given(number)) {
    return fail(std::string(policy) + " has " + quoted(name) + " twice, accepted: once");
  }
  const auto value = parse_value(
      policy, parameters[number],
      equals == std::string_view::npos ? std::string_view() : trimmed(text.substr(equals + 1)));
  if (!value) {
    return std::unexpected(value.error());
  }
  named.values.set(number, *value);
  return {};
}

}  // namespace

std::span<const PolicyParameter> parameters_of(EvictionPolicy policy) {
  static constexpr std::array kAll = {
#define ENCORE_PARAMETERS(id, name, policy) parameters_of_order<policy>(),
      ENCORE_EVICTION_POLICIES(ENCORE_PARAMETERS)
#undef ENCORE_PARAMETERS
  };
  return kAll[static_cast<std::size_t>(policy)];
}

Result<NamedEviction> parse_eviction_name(std::string_view text) {
  const std::size_t open = text.find('(');
  const std::string_view name = trimmed(text.substr(0, open));
  const auto policy = parse_eviction(name);
  if (!policy) {
    return fail("unknown eviction policy " + quoted(name) + choices(name, kEvictionNames));
  }
  NamedEviction named{.policy = *policy, .values = {}};
  if (open == std::string_view::npos) {
    return named;
  }
  std::string_view rest = trimmed(text.substr(open + 1));
  if (!rest.ends_with(')')) {
    return fail(quoted(text) + " has no \")\" at its end, accepted: name(parameter=value,...)");
  }
  rest.remove_suffix(1);
  while (true) {
    const std::size_t comma = rest.find(',');
    if (auto set = parse_setting(named, rest.substr(0, comma)); !set) {
      return std::unexpected(set.error());
    }
    if (comma == std::string_view::npos) {
      return named;
    }
    rest = rest.substr(comma + 1);
  }
}

bool weighs_latency(const NamedEviction& named) {
  const std::span<const PolicyParameter> parameters = parameters_of(named.policy);
  const auto cost = std::ranges::find(parameters, MissCost::kName, &PolicyParameter::name);
  return cost != parameters.end() && named.values.count(parameters, MissCost::kName) ==
                                         static_cast<std::uint64_t>(MissCost::Kind::kLatency);
}

std::string eviction_name(EvictionPolicy policy, const PolicyValues& values) {
  std::string text(to_string(policy));
  const std::span<const PolicyParameter> parameters = parameters_of(policy);
  bool first = true;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (values.given(i)) {
      text += std::exchange(first, false) ? "(" : ",";
      text += std::string(parameters[i].name) + "=" + parameter_text(parameters[i], values.at(i));
    }
  }
  return first ? text : text + ")";
}

std::string parameter_text(const PolicyParameter& parameter, double value) {
  return parameter.kind == PolicyParameter::Kind::kChoice
             ? std::string(parameter.names[static_cast<std::size_t>(value)])
             : number_text(value);
}

std::string range_text(const PolicyParameter& parameter) {
  if (parameter.kind == PolicyParameter::Kind::kChoice) {
    std::string text;
    for (const std::string_view name : parameter.names) {
      text += (text.empty() ? "" : ", ") + std::string(name);
    }
    return text;
  }
  return std::string(parameter.kind == PolicyParameter::Kind::kCount ? "a whole number, " : "") +
         number_text(parameter.min) + " to " + number_text(parameter.max);
}

}  // namespace encore::cache
