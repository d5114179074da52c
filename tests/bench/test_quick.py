"""The table of --quick, where it fails, and its refusals of arguments that it cannot take."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from callgrind import Origin, Row, target_of, write_config
from test_claim import load

quick = load("quick")


class Cells(unittest.TestCase):
    times = [(100, 300), (50, 600)]

    def test_ratios_are_those_of_this_build_to_the_baseline(self):
        text, failed = quick.cells("hit", [5050, 5000], self.times, 3)
        self.assertEqual("| hit | 5,050 | 5,000 | 1.0100 | 100 | 50 | 2.00 | 300 | 600 | 0.50 |", text)
        self.assertFalse(failed)

    def test_more_than_the_bound_fails_and_the_bound_does_not(self):
        self.assertFalse(quick.cells("hit", [1030, 1000], self.times, 3)[1])
        text, failed = quick.cells("hit", [1031, 1000], self.times, 3)
        self.assertTrue(failed)
        self.assertIn("1.0310 FAIL", text)

    def test_fewer_instructions_never_fail(self):
        self.assertFalse(quick.cells("hit", [1, 1000], self.times, 0)[1])


class Percentiles(unittest.TestCase):
    def test_they_are_values_that_were_measured(self):
        ordered = list(range(1, 101))
        self.assertEqual((51, 100), (quick.percentile(ordered, 0.5), quick.percentile(ordered, 0.99)))
        self.assertEqual(7, quick.percentile([7], 0.99))


class Rows(unittest.TestCase):
    def config(self, row):
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "encore.toml"
            write_config(path, pathlib.Path(name), Origin(), 8080, row)
            return path.read_text()

    def test_what_a_row_asks_for_is_configured(self):
        plain = self.config(Row("/hit", 1, False, True))
        for text in ("tls =", "[[disk]]", "[cache]", "[shadow]"):
            self.assertNotIn(text, plain)
        disk = self.config(quick.CASES["disk hit"].row)
        self.assertIn('[cache]\nmemory = "4MiB"', disk)
        self.assertIn("[[disk]]", disk)
        self.assertIn("tls = [{certificate = ", self.config(quick.CASES["TLS hit"].row))

    def test_targets_repeat_where_there_are_so_many_urls(self):
        row = Row("/s/{}", 1, False, True, urls=3)
        self.assertEqual(["/s/10000000", "/s/10000001", "/s/10000002", "/s/10000000"],
                         [target_of(row, number) for number in range(4)])
        self.assertEqual("/s/10000003", target_of(row._replace(urls=0), 3))

    def test_the_disk_has_more_than_the_memory_holds(self):
        row = quick.CASES["disk hit"].row
        self.assertGreater(row.urls * 65536, 2 * (4 << 20))
        self.assertGreaterEqual(row.first, row.urls)


class Arguments(unittest.TestCase):
    def refused(self, *arguments):
        ended = subprocess.run([sys.executable, "-B", HERE / "quick", "--programs", "/nonexistent", *arguments],
                               capture_output=True, text=True, check=False)
        self.assertEqual((2, ""), (ended.returncode, ended.stdout))
        return ended.stderr

    def test_what_cannot_be_taken_is_named_with_what_can(self):
        baseline = ["--baseline", sys.executable]
        self.assertIn("--only cold; accepted, or a part of one: hit, ", self.refused(*baseline, "--only", "cold"))
        self.assertIn("--rounds 0; accepted: 1 and more", self.refused(*baseline, "--rounds", "0"))
        self.assertIn("/nonexistent/encore is no program", self.refused(*baseline))
        self.assertIn("--baseline", self.refused())


if __name__ == "__main__":
    unittest.main()
