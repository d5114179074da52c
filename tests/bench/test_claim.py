"""The claim's figures: what is read, derived and compared, and that what is wrong is said."""

import argparse
import copy
import csv
import importlib.machinery
import importlib.util
import lzma
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import claim_plot
import claim_table
import claim_workloads
from disk_caches import Setup, caches, encore_config, squid_hits
from measure import Problem
from peers import free_port
from written import Io, WritingServer, bytes_below, file_system, parse_io


def load(name):
    """A script as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(HERE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


DRIVEN = {"interrupted": False, "notes": [], "rows": [
    {"run": "simulator", "requests": 9},
    {"run": "proxy", "requests": 1000, "hits": 400, "bytes": 80000, "origin_requests": 600,
     "origin_bytes": 60000, "errors": 0, "mismatches": 0}]}
REPLAYED = {"rows": [
    {"eviction": "lru", "admission": admission, "requests": 1000, "bytes_requested": 80000,
     "object_hit_ratio": ratio, "byte_hit_ratio": 0.3, "bytes_written": written}
    for admission, ratio, written in (("always", 0.41, 50000), ("second-hit", 0.42, 20000))]}

# Writes nothing until it is asked to end; then a child of it writes 256 pages.
LATE_WRITER = """
import signal, socket, subprocess, sys
def end(*_):
    subprocess.run(["dd", "if=/dev/zero", "bs=4096", "count=256", "of=" + sys.argv[2]], check=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    while True:
        listener.accept()[0].close()
"""


def row(name, admission="always", cache_bytes=50000, device_bytes=55000):
    made = claim_table.driven(DRIVEN)
    made |= {"cache": name, "id": name, "disk": claim_table.writes(
        Io(1000, 0), Io(1000 + cache_bytes + 300, 0), 300, device_bytes)}
    made["disk"] |= {"held_mean": 5 << 20, "held_most": 7 << 20}
    made["simulated"] = {"as": ("lru", admission),
                         **claim_table.simulated(REPLAYED)["lru", admission]}
    return made


class Figures(unittest.TestCase):
    def test_hits_are_what_the_origin_did_not_see(self):
        figures = claim_table.driven(DRIVEN)
        self.assertEqual((0.4, 0.25, 400), (figures["hit_ratio"], figures["byte_hit_ratio"],
                                            figures["hits_said"]))

    def test_written_is_since_the_start_and_without_logs(self):
        said = claim_table.writes(Io(500, 10), Io(9500, 60), 1000, 8500)
        self.assertEqual({"written": 9000, "logs": 1000, "cache": 8000, "cancelled": 50,
                          "at_start": 500, "device": 8500}, said)

    def test_a_good_row_has_no_problem(self):
        self.assertEqual([], claim_table.problems(row("nginx")))
        self.assertEqual([], claim_table.problems({**row("nginx"), "hits_said": 401}))

    def test_each_kind_of_wrong_figure_is_said(self):
        for change, said in (({"errors": 1}, "1 errors, 0 wrong bodies"),
                             ({"mismatches": 2}, "0 errors, 2 wrong bodies"),
                             ({"interrupted": True}, "1000 of 1000 requests were driven"),
                             ({"requests": 999, "hits_said": 399}, "999 of 1000 requests were driven"),
                             ({"hits_said": 402}, "the cache speaks of 598 misses, the origin saw "
                                                  "600 requests"),
                             ({"faults": ["died under load"]}, "died under load")):
            with self.subTest(change):
                self.assertEqual([said], claim_table.problems({**row("nginx"), **change}))

    def test_a_device_that_saw_less_than_was_written_is_said(self):
        few = row("nginx", device_bytes=49000)
        self.assertEqual(["the processes wrote 50000 bytes, the device saw 49000"],
                         claim_table.problems(few))
        few["disk"]["cancelled"] = 1000
        self.assertEqual([], claim_table.problems(few))

    def test_a_row_is_compared_with_its_own_cache_that_stores_everything(self):
        rows = [row("a", cache_bytes=1000, device_bytes=1000), row("b"),
                row("b twice", "second-hit", cache_bytes=20000, device_bytes=22000),
                {**row("memory"), "disk": None}]
        rows[2]["byte_hit_ratio"] = 0.5
        always = {"a": "a", "b": "b", "b twice": "b", "memory": "memory"}
        alone = copy.deepcopy(rows[2:])
        claim_table.compare(rows, always)
        self.assertEqual([1, 1, 0.4, None], [r.get("of_always") for r in rows])
        self.assertEqual((0.4, 0.25),
                         (rows[2]["device_of_always"], rows[2]["byte_hit_gain"]))
        claim_table.compare(alone, always)
        self.assertNotIn("of_always", alone[0])

    def test_the_table_has_a_line_for_each_cache(self):
        rows = [row("nginx"), {**row("encore"), "disk": None},
                {"cache": "other", "missing": "not installed", "simulated": row("")["simulated"]}]
        claim_table.compare(rows, {"nginx": "nginx"})
        rows[0]["problems"] = ["died under load"]
        lines = claim_table.text({"name": "w", "text": "t", "rows": rows}).splitlines()
        self.assertEqual("| nginx | 40.0 | 25.0 | 0.00 | 100.0 | 0.00 | 5 / 7 | lru always | 41.0 "
                         "| 30.0 | 0.00 |", lines[4])
        self.assertEqual("| encore | 40.0 | 25.0 | - | - | - | - |", lines[5][:40])
        self.assertEqual("| other | not installed | - |", lines[6][:29])
        self.assertEqual({12}, {line.count("|") for line in lines[2:7]})
        self.assertEqual("- nginx: died under load", lines[8])


class Writes(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="encore-claim-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.directory)

    def test_the_kernels_words_are_read(self):
        self.assertEqual(Io(8192, 4096, 5), parse_io(
            "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 8192\n"
            "cancelled_write_bytes: 4096\n"))

    def test_what_a_child_writes_at_the_very_end_is_counted(self):
        if file_system(self.directory)[0] in ("tmpfs", "ramfs", "overlay"):
            self.skipTest("/var/tmp is no file system that counts")
        (self.directory / "ours").write_bytes(bytes(1 << 20))  # is none of the server's
        port = free_port()
        server = WritingServer("late", [sys.executable, "-c", LATE_WRITER, port,
                                        self.directory / "file"], port)
        self.addCleanup(server.stop)
        self.assertIsNone(server.missing)
        server.stop()
        self.assertFalse(server.killed)
        # Now and then the kernel charges a page of the file system's own to who made it dirty.
        pages = (server.io.written - server.io_at_start.written) // 4096
        self.assertIn(pages, range(256, 256 + 16))

    def test_files_below_a_directory_are_added(self):
        (self.directory / "a/b").mkdir(parents=True)
        for name, pages in (("one", 1), ("a/two", 2), ("a/b/three", 3)):
            with open(self.directory / name, "wb") as file:
                file.write(bytes(4096 * pages))
                os.fsync(file.fileno())
        self.assertEqual(6 * 4096, bytes_below(self.directory))


ENCORE = {**row("encore", cache_bytes=40000), "cache": "Encore", "memory": 16 << 20}


def report(*names, rows=None):
    """A report of the workloads `names`, each with encore, nginx and one that could not run."""
    rows = rows or [ENCORE, row("nginx"), {"cache": "Squid", "id": "squid", "missing": "gone",
                                           "simulated": row("")["simulated"]}]
    return {"machine": "m", "date": "d", "versions": {"nginx": "1"}, "cache_bytes": 256 << 20,
            "rate": 2000, "directory": "ext4 on a", "own_file_system": True, "skipped": [],
            "workloads": [{"name": name, "text": f"text of {name}", "rows": copy.deepcopy(rows)}
                          for name in names]}


class Summary(unittest.TestCase):
    def test_all_workloads_are_in_one_table(self):
        lines = claim_table.summary(report("a", "b"), ["squid", "nginx", "encore"]).splitlines()
        self.assertEqual("|  | a: hits % | of bytes % | written GiB | b: hits % | of bytes % "
                         "| written GiB | held MiB |", lines[0])
        self.assertEqual("| nginx | 40.0 | 25.0 | 0.00 | 40.0 | 25.0 | 0.00 | 5, 5 |", lines[2])
        self.assertEqual("| Encore | 40.0 | 25.0 | 0.00 | 40.0 | 25.0 | 0.00 | 21, 21 |", lines[3])
        self.assertEqual(4, len(lines), "what was not measured has no line")

    def test_hits_of_bytes_are_left_out_where_all_objects_have_one_size(self):
        same = report("a", rows=[{**ENCORE, "byte_hit_ratio": ENCORE["hit_ratio"]}])
        self.assertEqual("|  | a: hits % | written GiB | held MiB |",
                         claim_table.summary(same, ["encore"]).splitlines()[0])

    def test_what_a_workload_lacks_is_a_dash(self):
        made = report("a", "b")
        made["workloads"][1]["rows"].pop(0)
        self.assertEqual("| Encore | 40.0 | 25.0 | 0.00 | - | - | - | 21, - |",
                         claim_table.summary(made, ["encore"]).splitlines()[2])

    def test_the_verdict_names_the_best_of_the_others(self):
        gib = 1 << 30
        rows = [row("encore", cache_bytes=gib), row("encore-always", cache_bytes=1),
                {**row("most", cache_bytes=3 * gib), "hit_ratio": 0.5},
                row("fewest", cache_bytes=gib // 2), {**row("x"), "disk": None}]
        self.assertEqual(
            ["a: encore 40.0 %, 1.00 GiB; of the others, most hits: most 50.0 %, 3.00 GiB; "
             "fewest bytes written: fewest 40.0 %, 0.50 GiB."],
            claim_table.verdicts(report("a", rows=rows)))
        self.assertEqual([], claim_table.verdicts(report("a", rows=rows[2:])))

    def test_reports_of_several_runs_are_one(self):
        later = report("a", "c", rows=[{**ENCORE, "hit_ratio": 0.9}])
        later["versions"] = {"Squid": "5"}
        whole = claim_table.merged([report("a", "b"), later], ["c", "b"], ["nginx", "encore"])
        self.assertEqual(["c", "b", "a"], [w["name"] for w in whole["workloads"]])
        self.assertEqual([("nginx", 0.4), ("encore", 0.9), ("squid", None)],
                         [(r["id"], r.get("hit_ratio")) for r in whole["workloads"][2]["rows"]])
        self.assertEqual(0.4, whole["workloads"][1]["rows"][1]["hit_ratio"])
        self.assertEqual({"nginx": "1", "Squid": "5"}, whole["versions"])

    def test_reports_that_do_not_belong_together_are_refused(self):
        for change in ({"cache_bytes": 1}, {"workloads": [{"name": "a", "text": "other",
                                                           "rows": []}]}):
            with self.subTest(change), self.assertRaises(ValueError):
                claim_table.merged([report("a"), {**report("a"), **change}], [], [])

    def test_a_run_takes_as_long_as_its_rate_or_its_bytes_say(self):
        start = claim_table.START_SECONDS
        self.assertAlmostEqual(start + 100, claim_table.estimate_seconds(10_000, 0, 100))
        self.assertAlmostEqual(start + 13, claim_table.estimate_seconds(10_000, 400_000, 100_000))
        self.assertAlmostEqual(start + 3, claim_table.estimate_seconds(10_000, 0, 0))

    def test_the_table_of_the_readme_is_what_the_bench_prints(self):
        text = (HERE.parent.parent / "README.md").read_text()
        lines = [line for line in text.splitlines() if line.startswith("| ")]
        head = next(i for i, line in enumerate(lines) if "synthetic: hits %" in line)
        wanted = [cache.name for cache in caches("") if cache.default]
        cells = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines[head:]]
        self.assertEqual(
            ["", "synthetic: hits %", "of bytes %", "written GiB", "web07: hits %", "written GiB",
             "orm-night: hits %", "written GiB", "held MiB"], cells[0])
        self.assertEqual(wanted, [line[0] for line in cells[1:1 + len(wanted)]])
        for line in cells[1:1 + len(wanted)]:
            for cell in line[1:-1]:
                self.assertRegex(cell, r"^(\d+\.\d+|-)$")
        self.assertIn("./dev bench --claim", text)
        self.assertIn("build/claim/claim.png", text)


class Plot(unittest.TestCase):
    def test_the_csv_has_a_line_for_each_point(self):
        lines = list(csv.DictReader(io.StringIO(claim_plot.csv_text(report("a", "b")))))
        self.assertEqual([("a", "Encore"), ("a", "nginx"), ("b", "Encore"), ("b", "nginx")],
                         [(line["workload"], line["system"]) for line in lines])
        self.assertEqual({"workload": "a", "system": "nginx", "hits_percent": "40.000",
                          "byte_hits_percent": "25.000", "written_bytes": "50000",
                          "held_mean_bytes": str(5 << 20), "held_most_bytes": str(7 << 20)},
                         lines[1])

    def test_every_system_is_a_labelled_point_in_a_panel_of_its_workload(self):
        script = claim_plot.script(report("a", "it's"), "/x/y.png")
        self.assertIn("set output '/x/y.png'", script)
        self.assertEqual(["set title 'a' noenhanced", "set title 'it''s' noenhanced"],
                         [line for line in script.splitlines() if line.startswith("set title")])
        self.assertEqual(2, script.count("set label 'Encore' at "))
        self.assertEqual(2, script.count("set label 'nginx' at "))
        self.assertNotIn("Squid", script)
        self.assertIn("layout 1,2", script)

    def test_a_png_is_drawn(self):
        if not shutil.which("gnuplot"):
            self.skipTest("no gnuplot")
        directory = pathlib.Path(tempfile.mkdtemp(prefix="encore-claim-"))
        self.addCleanup(shutil.rmtree, directory)
        self.assertIsNone(claim_plot.draw(report("a", "b"), directory / "a.png"))
        self.assertEqual(b"\x89PNG", (directory / "a.png").read_bytes()[:4])
        self.assertIn("gnuplot says",
                      claim_plot.draw(report("a"), directory / "missing/a.png"))

    def test_nothing_measured_is_nothing_drawn(self):
        self.assertEqual("no plot: nothing was measured", claim_plot.draw(report(), "x.png"))


class Systems(unittest.TestCase):
    def test_every_cache_has_one_that_stores_everything_and_a_prediction(self):
        made = {cache.id: cache for cache in caches("/nonexistent")}
        self.assertEqual(
            ["encore", "nginx", "nginx-min-uses", "ats", "ats-promote", "squid", "squid-gdsf",
             "varnish"], [cache.id for cache in made.values() if cache.default])
        for cache in made.values():
            self.assertEqual("always", made[cache.always].simulated[1])
            self.assertEqual(made[cache.always].simulated[0], cache.simulated[0])

    def test_encore_runs_its_defaults_for_disks(self):
        setup = Setup(None, "/f", 256 << 20, 80)
        config = encore_config(setup, None, 90, 16 << 20)
        for key in ("policy", "segment", "capacity", "write_cost"):
            self.assertNotRegex(config, f"(?m)^{key} *=")
        self.assertIn(f'size = "{240 << 20}"', config)
        self.assertIn('policy = "always"', encore_config(setup, "always", 90, 16 << 20))

    def test_hits_of_squid_are_read(self):
        self.assertEqual(7, squid_hits("client_http.requests = 9\nclient_http.hits = 7\n"))
        with self.assertRaises(Problem):
            squid_hits("client_http.requests = 9\n")


class Options(unittest.TestCase):
    def setUp(self):
        self.claim = load("claim")

    def test_lists_are_read(self):
        options = self.claim.parse_arguments(
            ["--systems", "squid, nginx,squid", "--workloads", "web07,./a/b.csv"])
        self.assertEqual(["squid", "nginx"], options.systems)
        self.assertEqual(["web07", "./a/b.csv"], options.workloads)
        self.assertEqual(["synthetic", "web07", "orm-night"],
                         self.claim.parse_arguments([]).workloads)

    def test_an_unknown_name_is_refused_with_those_that_are_known(self):
        for argument, text, said in (
                ("systems", "nginx,apache", '"apache" is not a system: encore, nginx, '),
                ("systems", "", '"" is not a system: encore, '),
                ("workloads", "web7", '"web7" is not a workload: synthetic, web07, orm-night'),
                ("requests", "-1", '"-1" is not accepted: 0 to 999999999')):
            with self.subTest(argument=argument, text=text):
                ended = self.run_claim(f"--{argument}={text}")
                self.assertEqual(2, ended.returncode)
                self.assertIn(said, ended.stderr)

    def run_claim(self, *arguments):
        return subprocess.run([sys.executable, "-B", HERE / "claim", *arguments], text=True,
                              capture_output=True, timeout=60, check=False)

    def test_help_has_examples_and_every_system(self):
        said = self.run_claim("--help").stdout
        self.assertIn("./dev bench --claim --systems encore,nginx-min-uses --workloads web07", said)
        for cache in caches(""):
            self.assertIn(cache.id, said)

    def test_a_peer_that_is_not_installed_ends_it_before_anything_is_measured(self):
        self.claim.find_program = lambda name: name != "varnishd"
        options = self.claim.parse_arguments(["--systems", "nginx,varnish"])
        with self.assertRaisesRegex(Problem, "^Varnish, file storage is not installed: apt-get "
                                             "install --no-install-recommends varnish"):
            self.claim.wanted_caches(options)
        options = self.claim.parse_arguments(["--systems", "nginx,encore"])
        self.assertEqual(["encore", "nginx"], [c.id for c in self.claim.wanted_caches(options)])

    def test_earlier_results_are_drawn_without_measuring(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="encore-claim-"))
        self.addCleanup(shutil.rmtree, directory)
        rows = [{**r, "problems": []} for r in report("a")["workloads"][0]["rows"][:2]]
        (directory / "1.json").write_text(json.dumps(report("a", rows=rows)))
        (directory / "2.json").write_text(json.dumps(report("b", rows=rows)))
        out = directory / "out"
        ended = self.run_claim("--merge", directory / "1.json", "--merge", directory / "2.json",
                               "--output", out)
        self.assertEqual((0, ""), (ended.returncode, ended.stderr))
        self.assertEqual(ended.stdout.partition("\nPlot: ")[0], (out / "claim.md").read_text())
        self.assertEqual(5, len((out / "claim.csv").read_text().splitlines()))
        ended = self.run_claim("--merge", out / "claim.md", "--output", out)
        self.assertEqual(1, ended.returncode)
        self.assertIn(f"claim: --merge {out}/claim.md is no claim.json", ended.stderr)


class Workloads(unittest.TestCase):
    def setUp(self):
        self.claim = load("claim")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="encore-claim-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def test_a_binary_trace_is_cut_to_its_first_requests(self):
        whole = self.directory / "t.xz"
        whole.write_bytes(lzma.compress(bytes(range(80))))
        for form, width in (("int32", 4), ("int64", 8)):
            file = claim_workloads.cut(whole, form, 3, self.directory)
            self.assertEqual(bytes(range(3 * width)), file.read_bytes())
        for form, requests in (("int32", 0), ("csv", 3)):
            with self.subTest(form=form, requests=requests):
                self.assertEqual(whole, claim_workloads.cut(whole, form, requests, self.directory))

    def test_a_csv_is_cut_to_its_head_and_first_requests(self):
        file = self.directory / "a.csv"
        file.write_text("time,key\n1,a\n2,b\n3,c\n")
        claim_workloads.cut_lines(file, 2)
        self.assertEqual("time,key\n1,a\n2,b\n", file.read_text())
        claim_workloads.cut_lines(file, 9)
        self.assertEqual("time,key\n1,a\n2,b\n", file.read_text())

    def test_of_two_limits_the_smaller_counts_and_none_is_all(self):
        self.assertEqual([5, 5, 5, 5, 0], [claim_workloads.fewer(*pair) for pair in
                                           ((5, 7), (7, 5), (0, 5), (5, 0), (0, 0))])

    def test_a_trace_that_is_not_there_is_said_and_left_out(self):
        self.assertEqual(
            f"web07 is left out: there is no {self.directory}/web07.trace.xz; "
            "--traces names its directory",
            claim_workloads.made(None, "web07", 0, 1, self.directory, self.directory))
        self.assertEqual("./no.csv is left out: there is no no.csv",
                         claim_workloads.made(None, "./no.csv", 0, 1, "/", self.directory))

    def test_objects_of_one_size_fill_ten_caches(self):
        told = {"requests": 100, "objects": 20, "one_hit_objects_share": 0.5, "bytes_unique": None}
        simulator = type("Simulator", (), {
            "run": lambda self, *_: {"trace": [{"format": "int32"}], "rows": [told]}})()
        file = self.directory / "mine.trace.xz"
        file.write_bytes(lzma.compress(bytes(400)))
        made = claim_workloads.made(simulator, str(file), 50, 6000, "/", self.directory)
        self.assertEqual(("mine", ["--format", "int32", "--default-size", 3000], 100, 3000),
                         (made.name, made.arguments, made.requests, made.bytes_mean))
        self.assertEqual(200, made.file.stat().st_size)

    def test_sizes_are_read_and_refused(self):
        self.assertEqual(1 << 30, self.claim.size_argument("1GiB"))
        for text in ("127MiB", "12", "1TB", "", "-1GiB", "2000GiB"):
            with self.subTest(text), self.assertRaises(self.claim.argparse.ArgumentTypeError):
                self.claim.size_argument(text)


if __name__ == "__main__":
    unittest.main()
