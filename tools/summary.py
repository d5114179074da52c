#!/usr/bin/env python3
"""Counts test cases, not programs: the last line of `./dev test`.

Reads what CTest kept of a run (build/PRESET/Testing/Temporary/LastTest.log) and adds up what
Catch2 and unittest said of their cases. A program that ended without saying so counts as one case:
passed or failed as CTest saw it.
"""

import pathlib
import re
import sys

SECTION = re.compile(r"^\d+/\d+ Testing: (.*)$", re.M)
CATCH_ALL = re.compile(r"^All tests passed \(.*? in (\d+) test cases?\)", re.M)
CATCH_SOME = re.compile(r"^test cases: *(\d+)(.*)$", re.M)
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\n(OK|FAILED)(?: \((.*)\))?", re.M)


def count_of(text, word):
    """The number before `word` ("3 failed") or after it ("failures=3")."""
    match = re.search(rf"(\d+) {word}\b|\b{word}=(\d+)", text or "")
    return int(match.group(1) or match.group(2)) if match else 0


def count_program(text):
    """(passed, failed, skipped) of what one program wrote, and CTest's verdict at its end."""
    ok = "\nTest Passed." in text
    passed = failed = skipped = 0
    if match := CATCH_ALL.search(text):
        passed = int(match.group(1))
    elif match := CATCH_SOME.search(text):
        failed = count_of(match.group(2), "failed")
        passed = int(match.group(1)) - failed
    elif match := UNITTEST.search(text):
        skipped = count_of(match.group(3), "skipped")
        failed = count_of(match.group(3), "failures") + count_of(match.group(3), "errors")
        passed = max(0, int(match.group(1)) - skipped - failed)
    elif ok:
        passed = 1
    # A crash behind the summary, a time limit, a leak at exit: a failure whatever was counted.
    if not ok and failed == 0:
        failed = 1
    return passed, failed, skipped


def count_log(text):
    """Sums over all programs of a run."""
    sections = SECTION.split(text)[2::2]
    counts = [count_program(section) for section in sections]
    return tuple(sum(column) for column in zip(*counts)) if counts else (0, 0, 0)


def main():
    log = pathlib.Path(sys.argv[1]) / "Testing" / "Temporary" / "LastTest.log"
    passed, failed, skipped = count_log(log.read_text(errors="replace"))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))


if __name__ == "__main__":
    main()
