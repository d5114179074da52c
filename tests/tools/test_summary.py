"""The summary of a test run counts cases, and no failure gets lost."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import summary

PASSED = "\n<end of output>\nTest time =   0.01 sec\n-----\nTest Passed.\n"
FAILED = "\n<end of output>\nTest time =   0.01 sec\n-----\nTest Failed.\n"
HEAD = "Start testing: Nov 21 08:00 UTC\n-----\n"


def log(*programs):
    return HEAD + "".join(f"{i}/{len(programs)} Testing: t{i}\n{i}/{len(programs)} Test: t{i}\n"
                          f"Output:\n-----\n{text}" for i, text in enumerate(programs, 1))


class Summary(unittest.TestCase):
    def counts(self, *programs):
        return summary.count_log(log(*programs))

    def test_cases_of_all_programs_are_added(self):
        self.assertEqual((18, 0, 2), self.counts(
            "All tests passed (100 assertions in 12 test cases)\n" + PASSED,
            "All tests passed (1 assertion in 1 test case)\n" + PASSED,
            "Ran 6 tests in 1.2s\n\nOK (skipped=2)\n" + PASSED,
            "clauses ok\n" + PASSED))

    def test_failures_are_counted_in_every_form(self):
        self.assertEqual((12, 6, 1), self.counts(
            "test cases: 10 | 8 passed | 2 failed\nassertions: 9 | 5 passed | 4 failed\n" + FAILED,
            "Ran 8 tests in 1.2s\n\nFAILED (failures=2, errors=1, skipped=1)\n" + FAILED,
            "Segmentation fault" + FAILED))

    def test_a_program_that_fails_behind_its_good_summary_has_failed(self):
        self.assertEqual((3, 1, 0), self.counts(
            "All tests passed (4 assertions in 3 test cases)\nLeakSanitizer: 8 bytes\n" + FAILED))

    def test_no_run_is_no_success(self):
        self.assertEqual((0, 0, 0), summary.count_log(HEAD))


if __name__ == "__main__":
    unittest.main()
