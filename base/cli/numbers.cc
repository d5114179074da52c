#include "base/cli/numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/cli/lists.h"
#include "base/units.h"

namespace encore {
namespace {

constexpr std::size_t kNumbersMax = 4096;

template <typename Number>
bool read(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string shown(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.15g", value);
  return text.data();
}

std::string accepted(const NumberRange& range) {
  return range.max == NumberRange{}.max
             ? ", " + std::to_string(range.min) + " or more"
             : " from " + std::to_string(range.min) + " to " + std::to_string(range.max);
}
std::string accepted(const RealRange& range) {
  const std::string min = shown(range.min);
  if (range.max == RealRange{}.max) {
    return range.without_min ? " above " + min : ", " + min + " or more";
  }
  return (range.without_min ? " above " + min : " from " + min) +
         (range.without_min || range.without_max ? " and " : " ") +
         (range.without_max   ? "below "
          : range.without_min ? "up to "
                              : "to ") +
         shown(range.max);
}

std::string refused(std::string_view option, std::string_view text) {
  return std::string(option) + " \"" + std::string(text) + "\", accepted: ";
}

bool within(std::uint64_t number, const NumberRange& range) {
  return number >= range.min && number <= range.max;
}

}  // namespace

Result<std::uint64_t> parse_number(std::string_view option, std::string_view text,
                                   const NumberRange& range) {
  std::uint64_t number = 0;
  if (!read(text, number) || !within(number, range)) {
    return fail(refused(option, text) + "a whole number" + accepted(range));
  }
  return number;
}

Result<double> parse_real(std::string_view option, std::string_view text, const RealRange& range) {
  double real = 0;
  const bool good = read(text, real) && std::isfinite(real) && real >= range.min &&
                    real <= range.max && !(range.without_min && real == range.min) &&
                    !(range.without_max && real == range.max);
  if (!good) {
    return fail(refused(option, text) + "a number" + accepted(range));
  }
  return real;
}

Result<std::vector<std::uint64_t>> parse_numbers(std::string_view option, std::string_view text,
                                                 const NumberRange& range) {
  std::vector<std::uint64_t> numbers;
  const auto words = parse_words(option, text);
  bool good = words.has_value();
  for (std::size_t i = 0; good && i < words->size(); ++i) {
    const std::string_view word = (*words)[i];
    const std::size_t dots = word.find("..");
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    good = (dots == std::string_view::npos
                ? read(word, first) && read(word, last)
                : read(word.substr(0, dots), first) && read(word.substr(dots + 2), last)) &&
           within(first, range) && within(last, range) && first <= last &&
           last - first < kNumbersMax && numbers.size() + (last - first) < kNumbersMax;
    // Not by comparing with one beyond the last: of the largest number there is none.
    for (std::uint64_t more = 0; good && more <= last - first; ++more) {
      numbers.push_back(first + more);
    }
  }
  if (!good) {
    return fail(refused(option, text) + "whole numbers" + accepted(range) +
                ", as in 7, 1..8 or 1,2,4 (4096 at most)");
  }
  return numbers;
}

Result<std::vector<double>> parse_reals(std::string_view option, std::string_view text,
                                        const RealRange& range) {
  const auto words = parse_words(option, text);
  if (!words) {
    return fail(refused(option, text) + "numbers" + accepted(range) + ", with commas between them");
  }
  std::vector<double> reals;
  for (const std::string& word : *words) {
    const auto real = parse_real(option, word, range);
    if (!real) {
      return std::unexpected(real.error());
    }
    reals.push_back(*real);
  }
  return reals;
}

Result<std::uint64_t> parse_size(std::string_view option, std::string_view text,
                                 const NumberRange& bytes) {
  const auto size = parse_bytes(text);
  if (!size) {
    return fail(std::string(option) + " " + size.error().message);
  }
  if (!within(*size, bytes)) {
    return fail(refused(option, text) + "bytes" + accepted(bytes));
  }
  return *size;
}

Result<Nanoseconds> parse_time_span(std::string_view option, std::string_view text) {
  const auto span = parse_duration(text);
  return span ? *span : Result<Nanoseconds>(fail(std::string(option) + " " + span.error().message));
}

}  // namespace encore
