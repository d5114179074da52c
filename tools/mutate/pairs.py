"""Asks the compiler which neighbouring arguments have one type, for all calls of a source in one run.

A probe with the types of both arguments stands before the second one. Its assertion fails, and prints the
probe's number, if neither type converts to the other.
"""

import re

PROBE = """\
#include <type_traits>
template <int N, typename A, typename B>
struct encore_mutate_probe {
  using Left = std::remove_cvref_t<A>;
  using Right = std::remove_cvref_t<B>;
  static constexpr bool kNumbers = std::is_arithmetic_v<Left> || std::is_arithmetic_v<Right>;
  static constexpr bool kConverts = std::is_convertible_v<A, Right> || std::is_convertible_v<B, Left>;
  static_assert(std::is_same_v<Left, Right> || (kConverts && !kNumbers));
};
"""
FAILED = re.compile(r"encore_mutate_probe<(\d+),")


def with_probes(text, pairs):
    """A source that does not compile where it has pairs of two types. A pair: its arguments' (start, end)."""
    inserted = []
    for number, (left, right) in enumerate(pairs):
        types = ", ".join(f"decltype({text[start:end]})" for start, end in (left, right))
        before = f"(static_cast<void>(::encore_mutate_probe<{number}, {types}>{{}}), "
        inserted += [(right[0], before), (right[1], ")")]
    parts = []
    at = 0
    for position, new in sorted(inserted, key=lambda each: each[0]):
        parts += [text[at:position], new]
        at = position
    return PROBE + "".join(parts) + text[at:]


def differing(pairs, output):
    """The pairs that the compiler's output names."""
    return {pairs[int(number)] for number in FAILED.findall(output) if int(number) < len(pairs)}
