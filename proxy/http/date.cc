#include "proxy/http/date.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/http_date.h"
#include "proxy/http/list.h"

namespace encore::http {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};

// Consumes a text from its front; after a mismatch everything fails.
class Reader {
 public:
  explicit Reader(std::string_view text) noexcept : text_(text) {}

  bool finished() const noexcept { return ok_ && text_.empty(); }

  void exactly(std::string_view literal) noexcept {
    take(text_.starts_with(literal), literal.size());
  }
  void in_any_case(std::string_view literal) noexcept {
    take(equals_ignoring_case(text_.substr(0, literal.size()), literal), literal.size());
  }
  int digits(std::size_t count) noexcept {
    int value = 0;
    bool good = text_.size() >= count;
    for (std::size_t i = 0; good && i < count; ++i) {
      good = is_digit(text_[i]);
      value = value * 10 + (text_[i] - '0');
    }
    take(good, count);
    return value;
  }
  // Two digits, or a space and one.
  int padded_day() noexcept {
    if (!text_.starts_with(' ')) return digits(2);
    exactly(" ");
    return digits(1);
  }
  void day_name(std::size_t prefix) noexcept {
    for (const std::string_view day : kDays) {
      const std::string_view name = day.substr(0, prefix);
      if (equals_ignoring_case(text_.substr(0, name.size()), name)) return take(true, name.size());
    }
    ok_ = false;
  }
  // 1 to 12.
  unsigned month() noexcept {
    for (unsigned i = 0; i < kMonthNames.size(); ++i) {
      if (equals_ignoring_case(text_.substr(0, 3), kMonthNames[i])) {
        take(true, 3);
        return i + 1;
      }
    }
    ok_ = false;
    return 1;
  }

 private:
  void take(bool good, std::size_t count) noexcept {
    ok_ = ok_ && good;
    if (ok_) text_.remove_prefix(count);
  }

  std::string_view text_;
  bool ok_ = true;
};

struct Parts {
  int year = 0;
  unsigned month = 1;
  int day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;

  void read_time(Reader& reader) noexcept {
    hour = reader.digits(2);
    reader.exactly(":");
    minute = reader.digits(2);
    reader.exactly(":");
    second = reader.digits(2);
  }
  std::optional<UnixSeconds> seconds() const noexcept {
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
    const auto days = std::chrono::sys_days(date).time_since_epoch().count();
    return static_cast<UnixSeconds>(days) * 86400 + hour * 3600 + minute * 60 + second;
  }
};

constexpr std::size_t kWholeName = std::string_view::npos;

// Three letters as a number that does not depend on their case. It is that of no other bytes: 0x20
// is all that tells a small letter from a large one.
constexpr std::uint32_t letters(const char* text) noexcept {
  const auto at = [text](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]) | 0x20U);
  };
  return at(0) << 16 | at(1) << 8 | at(2);
}

template <std::size_t kNames>
using Abbreviations = std::array<std::uint32_t, kNames>;

// The first three letters of each.
template <std::size_t kNames>
consteval Abbreviations<kNames> abbreviated(const std::array<std::string_view, kNames>& names) {
  Abbreviations<kNames> all{};
  std::ranges::transform(names, all.begin(),
                         [](std::string_view name) { return letters(name.data()); });
  return all;
}
constexpr auto kShortDays = abbreviated(kDays);
constexpr auto kShortMonths = abbreviated(kMonthNames);

// Its place among them; their number if it is none.
template <std::size_t kNames>
std::size_t place_of(const char* text, const Abbreviations<kNames>& names) noexcept {
  const auto found = std::ranges::find(names, letters(text));
  return static_cast<std::size_t>(found - names.begin());
}

// "Sun, 06 Nov 1994 08:49:37 GMT": every byte has its place, and nearly all dates have this form.
class FixedDate {
 public:
  // REQUIRES: kDateBytes bytes.
  explicit FixedDate(const char* text) noexcept : text_(text) {}

  std::optional<UnixSeconds> read() noexcept {
    const std::size_t month = place_of(text_ + 8, kShortMonths);
    const bool is_formed = is(3, ',') && is(4, ' ') && is(7, ' ') && is(11, ' ') && is(16, ' ') &&
                           is(19, ':') && is(22, ':') && is(25, ' ') &&
                           letters(text_ + 26) == letters("GMT") && month != kShortMonths.size() &&
                           place_of(text_, kShortDays) != kShortDays.size();
    const Parts parts = {.year = two(12) * 100 + two(14),
                         .month = static_cast<unsigned>(month) + 1,
                         .day = two(5),
                         .hour = two(17),
                         .minute = two(20),
                         .second = two(23)};
    return is_formed && all_digits_ ? parts.seconds() : std::nullopt;
  }

 private:
  bool is(std::size_t at, char c) const noexcept { return text_[at] == c; }
  int two(std::size_t at) noexcept {
    all_digits_ = all_digits_ && is_digit(text_[at]) && is_digit(text_[at + 1]);
    return (text_[at] - '0') * 10 + (text_[at + 1] - '0');
  }

  const char* text_;
  bool all_digits_ = true;
};

std::optional<UnixSeconds> parse_imf(std::string_view text) noexcept {
  if (text.size() != kDateBytes) return std::nullopt;
  return FixedDate(text.data()).read();
}

int year_of(UnixSeconds time) noexcept {
  const auto days =
      std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(std::chrono::seconds(time)));
  return static_cast<int>(std::chrono::year_month_day(days).year());
}

std::optional<UnixSeconds> parse_rfc850(std::string_view text, UnixSeconds now) noexcept {
  Reader reader(text);
  Parts parts;
  reader.day_name(kWholeName);
  reader.exactly(", ");
  parts.day = reader.digits(2);
  reader.exactly("-");
  parts.month = reader.month();
  reader.exactly("-");
  const int this_year = year_of(now);
  parts.year = this_year - this_year % 100 + reader.digits(2);
  if (parts.year > this_year + 50) parts.year -= 100;
  reader.exactly(" ");
  parts.read_time(reader);
  reader.exactly(" ");
  reader.in_any_case("GMT");
  return reader.finished() ? parts.seconds() : std::nullopt;
}

std::optional<UnixSeconds> parse_asctime(std::string_view text) noexcept {
  Reader reader(text);
  Parts parts;
  reader.day_name(3);
  reader.exactly(" ");
  parts.month = reader.month();
  reader.exactly(" ");
  parts.day = reader.padded_day();
  reader.exactly(" ");
  parts.read_time(reader);
  reader.exactly(" ");
  parts.year = reader.digits(4);
  return reader.finished() ? parts.seconds() : std::nullopt;
}

}  // namespace

std::optional<UnixSeconds> parse_date(std::string_view text, UnixSeconds now) noexcept {
  if (text.size() < 24) return std::nullopt;
  if (text[3] == ',') return parse_imf(text);
  return text[3] == ' ' ? parse_asctime(text) : parse_rfc850(text, now);
}

}  // namespace encore::http
