"""encore-sim is interrupted: it ends soon wherever it is, says on what its report rests, and judges
nothing. test_simulation_docs.py presses Ctrl-C at the moments that the document shows.

A pipe that has sent a part of a trace and nothing more is the awaited event. Once it is empty and
every thread of the program sleeps, all that it has sent was read and processed, and the program
waits for more.
"""

import array
import fcntl
import json
import os
import shutil
import signal
import subprocess
import termios
import unittest

from harness import Case, DEADLINE, clean_environment, eventually, free_port, need_simulator, stop_process
from terminal import Terminal

# Lines of a trace, of which the last one is cut off: it counts for nothing.
REQUESTS = 20_000
TRACE = b"time,key,size\n" + b"".join(b"%d,%d,100\n" % (n, n % 7000) for n in range(REQUESTS))
HALF_A_LINE = b"20001,99"
EXIT_INTERRUPTED = 130


def unread(pipe):
    """Bytes that nobody has taken yet."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def threads(process):
    """State and switches of each thread: two that are equal and asleep had nothing to do between."""
    looks = []
    for number in sorted(os.listdir(f"/proc/{process.pid}/task")):
        with open(f"/proc/{process.pid}/task/{number}/status") as status:
            looks.append([line.split()[1] for line in status
                          if line.startswith(("State:", "voluntary_ctxt", "nonvoluntary_ctxt"))])
    return looks


def is_at_rest(process):
    try:
        first = threads(process)
        return all(look[0] == "S" for look in first) and first == threads(process)
    except OSError:  # a thread has just ended
        return False


class Interrupted(Case):
    def setUp(self):
        super().setUp()
        self.program = need_simulator()
        self.environment = clean_environment(TMPDIR=self.directory)

    def begin(self, *arguments, **options):
        process = subprocess.Popen(
            [self.program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment, **{"stdin": subprocess.PIPE, **options})
        self.addCleanup(self.forget, process)
        eventually(lambda: self.catches(process, signal.SIGINT), "it has begun")
        return process

    @staticmethod
    def catches(process, number):
        with open(f"/proc/{process.pid}/status") as status:
            caught = next(line for line in status if line.startswith("SigCgt:"))
        return int(caught.split()[1], 16) >> (number - 1) & 1

    @staticmethod
    def forget(process):
        stop_process(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def send(self, process, data):
        process.stdin.write(data)
        process.stdin.flush()
        eventually(lambda: unread(process.stdin) == 0, "all is taken")
        eventually(lambda: is_at_rest(process), "all is worked on")

    def end(self, process, number=signal.SIGINT):
        """Returns its output after an interrupt. Its pipe stays open, so it would wait for ever."""
        process.send_signal(number)
        out, err = process.stdout.read().decode(), process.stderr.read().decode()
        self.assertEqual(EXIT_INTERRUPTED, process.wait(DEADLINE), out + err)
        return out, err

    def report(self, *arguments, data=TRACE + HALF_A_LINE, number=signal.SIGINT):
        process = self.begin(*arguments, "--json")
        self.send(process, data)
        out, err = self.end(process, number)
        self.assertEqual("", err)
        report = json.loads(out)
        self.assertIs(True, report["interrupted"])
        self.assertTrue(report["notes"][0].startswith("Interrupted"))
        return report

    def test_what_a_pipe_had_sent_is_what_stats_rests_on(self):
        report = self.report("stats", "-")
        row = report["rows"][0]
        self.assertEqual((REQUESTS, 7000, 0), (row["requests"], row["objects"], row["bad"]))
        self.assertNotIn("advice", " ".join(report["notes"]))
        self.assertFalse([n for n in report["notes"] if "second-hit" in n or "short trace" in n])

    def test_what_a_pipe_had_sent_is_what_a_streamed_replay_rests_on(self):
        report = self.report("replay", "-", "--cache-size", "64KiB,512KiB", "--eviction", "lru")
        self.assertEqual(4, len(report["rows"]))
        # An interrupted replay takes 80 ms of CPU for what it has read already, and a slice of 4,096 at
        # least: on a slow machine that may not be enough for all, but it is the same for each.
        requests = report["rows"][0]["requests"]
        self.assertIn(requests, (*range(4096, REQUESTS, 4096), REQUESTS))
        for row in report["rows"]:
            self.assertEqual(requests, row["requests"])
            for unknown in ("one_hit_kept_out", "one_hit_let_in", "footprint_bytes"):
                self.assertIsNone(row[unknown], unknown)

    def test_nothing_is_simulated_with_a_part_of_a_trace_that_has_to_be_known(self):
        for arguments in (("tune", "-"), ("replay", "-", "--mrc", "5"),
                          ("replay", "-", "--cache-size", "10%"),
                          ("replay", "-", "--sample-objects", "100"),
                          ("replay", "-", "--eviction", "belady"), ("replay", "-", "--bounds"),
                          ("drive", "-", "--proxy", f"http://127.0.0.1:{free_port()}")):
            with self.subTest(arguments):
                report = self.report(*arguments)
                self.assertEqual([], report["rows"])
                self.assertNotIn("paste", report)
                self.assertIn(f" {REQUESTS} requests of the trace were read", " ".join(report["notes"]))

    def test_each_form_of_a_trace_ends_at_its_last_whole_record(self):
        record = b"".join(n.to_bytes(4, "big") for n in range(1, 20_001))
        report = self.report("stats", "-", "--format", "int32", data=record + b"\0\0")
        self.assertEqual(20_000, report["rows"][0]["requests"])
        # Only the bytes that a decompressor holds back are lost.
        whole = self.directory / "trace.csv"
        whole.write_bytes(TRACE)
        for program in filter(shutil.which, ("gzip", "xz", "zstd")):
            packed = subprocess.run([program, "-c", whole], capture_output=True, check=True).stdout
            with self.subTest(program):
                report = self.report("stats", "-", data=packed[:len(packed) * 3 // 4])
                if report["rows"]:
                    self.assertLess(report["rows"][0]["requests"], REQUESTS)

    def test_before_a_format_is_known_there_is_nothing_but_that(self):
        for data in (b"", b"\x1f\x8b", b"time,key,size\n1,2"):
            for command in ("stats", "tune", "replay", "drive"):
                with self.subTest(data=data, command=command):
                    more = ["--config", os.devnull] if command == "drive" else []
                    report = self.report(command, "-", *more, data=data, number=signal.SIGTERM)
                    self.assertEqual([], report["rows"])

    def test_a_named_pipe_without_a_writer_is_no_place_to_hang(self):
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        self.send_nothing("stats", pipe)
        self.send_nothing("verify", pipe)

    def send_nothing(self, *arguments):
        process = self.begin(*arguments, stdin=subprocess.DEVNULL)
        descriptors = f"/proc/{process.pid}/fd"
        eventually(lambda: any(os.path.realpath(f"{descriptors}/{fd}") == str(arguments[-1])
                               for fd in os.listdir(descriptors)), "the pipe is open")
        self.end(process)

    def test_what_cannot_be_stopped_is_abandoned(self):
        """A reader that takes nothing: the pipe is full, and so it stays."""
        for arguments in (("generate", "zipf", "-o", "-", "--requests", "100000000"),
                          ("blocks", "--trace", "--hashes", "3", "--bits", "16", "--events",
                           "100000000")):
            with self.subTest(arguments):
                process = self.begin(*arguments, stdin=subprocess.DEVNULL)
                size = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)
                eventually(lambda: unread(process.stdout) > size - 4096, "the pipe is full")
                process.send_signal(signal.SIGINT)
                self.assertEqual(EXIT_INTERRUPTED, process.wait(DEADLINE))
                self.assertIn("no results", process.stderr.read().decode())

    def test_an_interrupted_generate_leaves_a_shorter_trace(self):
        for name in ("trace.csv.zst", "trace.bin"):
            path = self.directory / name
            process = self.begin("generate", "zipf", "-o", path, "--requests", "10000000000",
                                 "--json", stdin=subprocess.DEVNULL)
            eventually(lambda: path.exists() and path.stat().st_size > 100_000, "some is written")
            report = json.loads(self.end(process)[0])
            self.assertIs(True, report["interrupted"])
            stats = json.loads(subprocess.run([self.program, "stats", path, "--json"], check=True,
                                              env=self.environment, capture_output=True).stdout)
            self.assertEqual(report["rows"][0]["requests"], stats["rows"][0]["requests"])
            self.assertIs(False, stats["interrupted"])
            path.unlink()

    def test_the_trace_on_standard_output_is_not_followed_by_a_report(self):
        process = self.begin("generate", "zipf", "-o", "-", "--csv", "--requests", "10000000000",
                             stdin=subprocess.DEVNULL)
        process.stdout.read(100_000)
        out, err = self.end(process)
        self.assertNotIn("Interrupted", out)
        self.assertIn("Interrupted", err)

    def test_a_second_interrupt_kills(self):
        process = self.begin("generate", "zipf", "-o", "-", "--requests", "100000000",
                             stdin=subprocess.DEVNULL)
        eventually(lambda: unread(process.stdout) > 60_000, "the pipe is full")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        self.assertIn(process.wait(DEADLINE), (-signal.SIGTERM, EXIT_INTERRUPTED))

    def interrupt_at(self, title, percent, *arguments):
        """The JSON of a run that was interrupted when the progress showed that much."""
        terminal = Terminal(self, [self.program, *map(str, arguments), "--json"],
                            env=self.environment)
        terminal.wait_for_percent(title, percent)
        terminal.press_control_c()
        status, out = terminal.end()
        self.assertEqual(EXIT_INTERRUPTED, status, out)
        report = json.loads(out)
        self.assertIs(True, report["interrupted"])
        return report

    def test_a_file_of_known_size_shows_how_far_it_is_read(self):
        sparse = self.directory / "sparse"
        with open(sparse, "wb") as file:
            file.truncate(1 << 40)
        report = self.interrupt_at("stats: reading", 0, "stats", sparse, "--format", "int32")
        self.assertGreater(report["rows"][0]["requests"], 0)

    def test_theory_is_that_of_the_seeds_that_are_complete(self):
        whole = json.loads(subprocess.run(
            [self.program, "blocks", "--hashes", "4", "--block-size", "64", "--json"],
            check=True, capture_output=True, env=self.environment).stdout)["rows"][0]
        report = self.interrupt_at("blocks", 20, "blocks", "--seeds", 500, "--hashes", 4,
                                   "--block-size", 64)
        row = report["rows"][0]
        self.assertGreater(row["seeds"], 0)
        self.assertLess(row["seeds"], 500)
        self.assertEqual(row["seeds"] * 100_000, row["events"])
        # The seeds differ a little in how many of their blocks are new.
        self.assertAlmostEqual(1, row["fpr_incremental"] / whole["fpr_incremental"], delta=0.01)
        self.assertAlmostEqual(1, row["fpr_weighted"] / whole["fpr_weighted"], delta=1e-9)
        self.assertLess(abs(row["z"]), 4.5)

    def test_comparisons_show_what_is_complete(self):
        for kind, title in (("structures", "blocks: events"), ("hashes", "blocks")):
            report = self.interrupt_at(title, 1, "blocks", "--compare", kind, "--hashes", 7,
                                       "--block-size", 64, "--events", 50_000_000, "--bits",
                                       400_000_000)
            for row in report["rows"]:
                self.assertGreater(row["new_blocks"], 0)

    def test_tune_recommends_nothing_before_its_evidence_is_complete(self):
        trace = self.directory / "trace.bin"
        subprocess.run([self.program, "generate", "akamai", "-o", trace, "--requests", "3000000"],
                       check=True, capture_output=True, env=self.environment)
        for phase, percent in (("windows", 1), ("FPRs", 40)):
            report = self.interrupt_at(f"tune: {phase}", percent, "tune", trace)
            self.assertEqual([], report["rows"])
            self.assertNotIn("paste", report)
            self.assertFalse([n for n in report["notes"] if "pay" in n or "gains" in n])
            rows = report["windows"] + report["fprs"]
            self.assertTrue(rows)
            for row in rows:
                self.assertGreater(row["requests"], 0)
                self.assertEqual(row["requests"] < 3_000_000, row["one_hit_let_in"] is None)
            if phase == "FPRs":
                self.assertGreater(len(report["windows"]), 9)
                self.assertEqual({3_000_000}, {r["requests"] for r in report["windows"]})


if __name__ == "__main__":
    unittest.main()
