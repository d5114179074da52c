// Numbers and lists of them as people write them on a command line. Pure functions. Every error
// names the option, shows the value and says what is accepted; nothing wraps, nothing is cut off.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace encore {

// The whole numbers that an option takes, both ends included.
struct NumberRange {
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
};
// The numbers that an option takes; never an infinite one or none.
struct RealRange {
  double min = 0;
  double max = std::numeric_limits<double>::max();
  bool without_min = false;
  bool without_max = false;
};

// "--bits", "800000". Decimal digits and nothing else.
Result<std::uint64_t> parse_number(std::string_view option, std::string_view text,
                                   const NumberRange& range = {});
// "--fpr", "0.01" or "1e-2".
Result<double> parse_real(std::string_view option, std::string_view text,
                          const RealRange& range = {});

// "7", "1..8", "1,2,4", "1..3,8": whole numbers, at most 4096 of them, in the given order.
Result<std::vector<std::uint64_t>> parse_numbers(std::string_view option, std::string_view text,
                                                 const NumberRange& range = {});
// "0.01,0.001".
Result<std::vector<double>> parse_reals(std::string_view option, std::string_view text,
                                        const RealRange& range = {});

// "64KiB" or "4096", and "90s": see base/units.h.
Result<std::uint64_t> parse_size(std::string_view option, std::string_view text,
                                 const NumberRange& bytes = {});
Result<Nanoseconds> parse_time_span(std::string_view option, std::string_view text);

}  // namespace encore
