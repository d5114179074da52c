"""The table of --goals and its status on canned results, and its refusals of arguments that it cannot take."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from test_claim import load

goals = load("goals")
RELATIVE = goals.Goal("miss", "run", "miss", 0.75, ("miss", "haproxy"), "HAProxy")
FLOOR = goals.Goal("hit", "run", "hit", 1.15, ("hit", "floor"), "floor")
ABSOLUTE = goals.Goal("bytes", "run", "bytes", 48)
LEAST = goals.Goal("workers", "run", "workers", 1.8, at_least=True)
BOUNDLESS = goals.Goal("calls", "run", "calls", None)
PEERS = {"nginx": 200.0, "haproxy": 100.0, "trafficserver": 300.0}


class Judged(unittest.TestCase):
    def check(self, goal, row, line, status, *notes):
        results = [goals.judge(goal, {goal.row: row})]
        self.assertEqual([line, *([""] if notes else []), *notes], goals.table(results)[2:])
        self.assertEqual(status, goals.status(results))

    def test_a_bound_that_is_met_is_said_with_the_ratio(self):
        self.check(RELATIVE, {"encore": 75.0, **PEERS},
                   "| miss | 75.00 | 200 | 100 | 300 | 0.75 x HAProxy | yes, 0.75 |", 0)
        self.check(FLOOR, {"encore": 11.5, "floor": 10.0},
                   "| hit | 11.50 | - | - | - | 1.15 x floor (10.00) | yes, 1.15 |", 0)
        self.check(ABSOLUTE, {"encore": 48}, "| bytes | 48.00 | - | - | - | at most 48 | yes |", 0)
        self.check(LEAST, {"encore": 1.8}, "| workers | 1.80 | - | - | - | at least 1.8 | yes |", 0)

    def test_a_missed_bound_is_told_and_the_status_is_1(self):
        self.check(RELATIVE, {"encore": 76.0, **PEERS},
                   "| miss | 76.00 | 200 | 100 | 300 | 0.75 x HAProxy | **no**, 0.76 |", 1)
        self.check(FLOOR, {"encore": 11.6, "floor": 10.0},
                   "| hit | 11.60 | - | - | - | 1.15 x floor (10.00) | **no**, 1.16 |", 1)
        self.check(ABSOLUTE, {"encore": 48.1}, "| bytes | 48.10 | - | - | - | at most 48 | **no** |", 1)
        self.check(LEAST, {"encore": 1.79}, "| workers | 1.79 | - | - | - | at least 1.8 | **no** |", 1)

    def test_a_missing_peer_is_a_dash_with_a_note(self):
        self.check(RELATIVE, {"encore": 75.0, **PEERS, "trafficserver": "missing"},
                   "| miss | 75.00 | 200 | 100 | - | 0.75 x HAProxy | yes, 0.75 |", 0,
                   "- Traffic Server: missing (miss)")

    def test_without_what_it_is_compared_with_a_goal_cannot_be_judged(self):
        self.check(RELATIVE, {"encore": 75.0, **PEERS, "haproxy": "missing"},
                   "| miss | 75.00 | 200 | - | 300 | 0.75 x HAProxy | - |", 2, "- HAProxy: missing (miss)")

    def test_a_figure_that_is_missing_is_status_2(self):
        self.check(ABSOLUTE, {"encore": "died under load"}, "| bytes | - | - | - | - | at most 48 | - |", 2,
                   "- encore: died under load (bytes)")
        self.check(BOUNDLESS, {"encore": "died under load"}, "| calls | - | - | - | - | - | - |", 2,
                   "- encore: died under load (calls)")
        self.check(BOUNDLESS, {"encore": 5.5}, "| calls | 5.50 | - | - | - | - | - |", 0)

    def test_a_missed_bound_goes_before_what_cannot_be_measured(self):
        rows = {"bytes": {"encore": 50}}
        results = [goals.judge(goal, rows, "scale ended with status 1") for goal in (LEAST, BOUNDLESS, ABSOLUTE)]
        self.assertEqual(1, goals.status(results))
        self.assertEqual("- scale ended with status 1 (workers; calls)", goals.table(results)[-1])


class Rows(unittest.TestCase):
    report = ("can answer after             0.1 s\nall loaded after          {} s, 7 a second\n"
              "found                     {} of 10000000\ncharged                      46.00 bytes each\n"
              "resident memory           {} bytes each\nof every 100th, missed        {}\n")

    def test_starts_give_medians(self):
        text = "".join(self.report.format(*figures) for figures in
                       (("3.0", 10_000_000, "50.0", 0), ("9.0", 10_000_000, "51.0", 0), ("2.0", 10_000_000, "47.0", 0)))
        self.assertEqual({"found after": {"encore": 3.0}, "charged": {"encore": 46.0}, "resident": {"encore": 50.0}},
                         goals.start_rows(text))

    def test_a_start_that_finds_less_has_no_figures(self):
        for figures in (("3.0", 9_999_999, "50.0", 0), ("3.0", 10_000_000, "50.0", 1)):
            self.assertEqual({"not all objects were found"},
                             {row["encore"] for row in goals.start_rows(self.report.format(*figures)).values()})

    def test_each_goal_has_a_bench_and_each_bench_a_goal(self):
        self.assertEqual(list(goals.BENCHES), list(dict.fromkeys(goal.bench for goal in goals.goals())))


class Command(unittest.TestCase):
    def run_goals(self, *arguments):
        return subprocess.run([sys.executable, "-B", HERE / "goals", *arguments], capture_output=True, text=True,
                              check=False)

    def test_what_cannot_be_taken_is_named_with_what_can(self):
        for arguments, said in ((["--only", "cold"], "--only cold; accepted, or a part of one: miss of 1 KiB, "),
                                (["--rounds", "0"], "--rounds 0; accepted: 1 and more"),
                                (["--directory", "/nonexistent"], "--directory /nonexistent; accepted: a directory"),
                                (["--programs", "/nonexistent"], "/nonexistent/encore is no program")):
            ended = self.run_goals(*arguments)
            self.assertEqual((2, ""), (ended.returncode, ended.stdout))
            self.assertIn(said, ended.stderr)

    def test_the_list_measures_nothing(self):
        ended = self.run_goals("--list", "--only", "two workers")
        self.assertEqual(0, ended.returncode)
        self.assertIn("two workers, times one\n  scale --programs=", ended.stdout)
        self.assertNotIn("quick", ended.stdout)

    def start(self, seconds):
        """The command with a bench that says so, in a folder of programs."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "bench").mkdir()
            bench = folder / "bench/disk_start_bench"
            bench.write_text("#!/bin/sh\ncat <<END\n" + Rows.report.format(seconds, 10_000_000, "47.0", 0) + "END\n")
            for program in (folder / "encore", bench):
                program.touch()
                program.chmod(0o755)
            ended = self.run_goals("--programs", folder, "--only", "start", "--json", folder / "json")
            return ended, json.loads((folder / "json").read_text())["goals"][0]

    def test_the_status_of_the_whole_command(self):
        ended, goal = self.start("2.9")
        self.assertEqual((0, True), (ended.returncode, goal["met"]), ended.stderr)
        ended, goal = self.start("3.1")
        self.assertEqual((1, False, 3.1), (ended.returncode, goal["met"], goal["encore"]))
        self.assertIn("| 3.10 | - | - | - | at most 3 | **no** |", ended.stdout)


if __name__ == "__main__":
    unittest.main()
