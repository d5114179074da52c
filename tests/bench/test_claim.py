"""The claim's figures: what is read, derived and compared, and that what is wrong is said."""

import copy
import importlib.machinery
import importlib.util
import lzma
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import claim_table
from disk_caches import caches
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

# Writes nothing until it is told to end; then a child of it writes 256 pages.
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
    made |= {"cache": name, "disk": claim_table.writes(
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


class Workloads(unittest.TestCase):
    def setUp(self):
        self.claim = load("claim")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="encore-claim-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def report(self, form, requests):
        return {"trace": [{"format": form}], "rows": [{"requests": requests}]}

    def test_a_binary_trace_is_cut_to_its_first_requests(self):
        whole = self.directory / "t.xz"
        whole.write_bytes(lzma.compress(bytes(range(80))))
        for form, width in (("int32", 4), ("int64", 8)):
            file, said = self.claim.cut(whole, self.report(form, 80 // width), 3, self.directory)
            self.assertEqual((bytes(range(3 * width)), form), (file.read_bytes(), said))
        for form, requests in (("int32", 0), ("int32", 20), ("csv", 3)):
            with self.subTest(form=form, requests=requests):
                self.assertEqual((whole, form), self.claim.cut(whole, self.report(form, 20),
                                                               requests, self.directory))

    def test_a_directory_without_such_a_trace_is_said(self):
        options = type("Options", (), {"traces": str(self.directory), "trace": ""})
        self.assertEqual(f"no real trace: {self.directory} has none",
                         self.claim.real(None, options, self.directory))
        (self.directory / "other.xz").touch()
        options = type("Options", (), {"traces": str(self.directory), "trace": "night"})
        self.assertEqual(f'no real trace: {self.directory} has none whose name contains "night"',
                         self.claim.real(None, options, self.directory))

    def test_sizes_are_read_and_refused(self):
        self.assertEqual(1 << 30, self.claim.size_argument("1GiB"))
        for text in ("127MiB", "12", "1TB", "", "-1GiB", "2000GiB"):
            with self.subTest(text), self.assertRaises(self.claim.argparse.ArgumentTypeError):
                self.claim.size_argument(text)

    def test_every_cache_has_one_that_stores_everything_and_a_prediction(self):
        made = {cache.name: cache for cache in caches("/nonexistent")}
        self.assertEqual(6, len(made))
        for cache in made.values():
            self.assertEqual("always", made[cache.always].simulated[1])
            self.assertEqual(made[cache.always].simulated[0], cache.simulated[0])


if __name__ == "__main__":
    unittest.main()
