"""encore-filter as scripts use it: pipes that close, disks that are full, interrupts, terminals, and
servers of every kind behind `fetch`."""

import gzip
import http.server
import json
import os
import signal
import subprocess
import threading
import unittest

from encore_filter import EncoreFilter
from harness import Case, carries, clean_environment, stop_process
from terminal import Terminal

NUMBERS = [str(i) for i in range(1000)]
SIZE = ("--capacity", 1000, "--fpr", 0.0001)


class Program(Case):
    def setUp(self):
        super().setUp()
        self.filter = EncoreFilter(self)
        self.filter.run("build", *SIZE, "-o", "f", keys=NUMBERS)

    def names(self):
        return sorted(path.name for path in self.directory.iterdir())

    def test_a_pipeline_as_of_grep(self):
        script = ("seq 990 1009 | $F test f; echo $?; seq 2000 2009 | $F test f; echo $?; "
                  "seq 990 1009 | $F test none; echo $?; printf '7\\r\\n8' | $F test f")
        ended = subprocess.run(["bash", "-c", script], cwd=self.directory, capture_output=True,
                               text=True, env=clean_environment(F=self.filter.program), check=False)
        printed = "".join(f"{i}\n" for i in range(990, 1000)) + "0\n1\n2\n7\n8\n"
        self.assertEqual(printed, ended.stdout)
        self.assertEqual("encore-filter test: cannot read none: No such file or directory\n",
                         ended.stderr)

    def peak_bytes(self, *words):
        """Returns the program's peak memory, beyond that for a small filter."""
        def peak(*command):
            with subprocess.Popen([self.filter.program, *command], cwd=self.directory,
                                  stdout=subprocess.DEVNULL, env=clean_environment()) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(0, process.returncode)
            return 1024 * usage.ru_maxrss
        return peak(*words) - peak("info", "f")

    @unittest.skipIf(carries("__asan_init") or carries("__tsan_init"), "it holds more itself")
    def test_a_filter_takes_no_more_than_is_said(self):
        size = ("--kind", "plain", "--bits", 1 << 29, "--hashes", 8, "--layout", "classic")
        self.filter.run("build", *size, "-o", "large", keys=NUMBERS)
        self.filter.run("convert", "large", "--to", "bloomnames-json", "-o", "large.json")
        for name, times in (("large", 1.1), ("large.json", 2.1)):
            file = (self.directory / name).stat().st_size
            self.assertGreater(file, 64 << 20)
            self.assertLess(self.peak_bytes("info", name), times * file, name)

    def info(self, name):
        return json.loads(self.filter.run("info", "--json", name))

    def test_a_low_rate_takes_a_layout_that_reaches_it(self):
        """At 1e-18 a classic filter takes some 90 bits a key, a split one thousands."""
        for rate in ("1e-9", "1e-12", "1e-16", "1e-18"):
            for kind in ("plain", "scalable", "counting", "growable"):
                with self.subTest(rate=rate, kind=kind):
                    self.filter.run("build", "--kind", kind, "--capacity", 1000, "--fpr", rate,
                                    "-o", "low", keys=NUMBERS)
                    said = self.info("low")
                    self.assertEqual("classic", said["layout"])
                    self.assertLess(said["bits"], 130 * len(NUMBERS))
                    self.assertEqual("1000\n", self.filter.run("test", "-c", "low", keys=NUMBERS))
            for kind in ("plain", "scalable"):
                for layout in ("split", "blocked"):
                    with self.subTest(rate=rate, kind=kind, layout=layout):
                        ended = self.filter.ended("build", "--kind", kind, "--layout", layout, "--fpr",
                                                  rate, "--capacity", 100_000, "-o", "costly",
                                                  keys=NUMBERS)
                        if ended.returncode:
                            self.assertIn(b"--layout classic", ended.stderr)
                        else:
                            self.assertLess(self.info("costly")["bits"], 4.1 * 100_000 * 100)
        self.filter.run("build", "--fpr", "1e-18", "-o", "million", keys=range(100_000))
        self.assertLess(self.info("million")["bits"], 300 * 100_000)
        self.filter.run("build", *SIZE, "-o", "usual", keys=NUMBERS)
        self.assertEqual("split", self.info("usual")["layout"])

    def test_no_build_takes_more_memory_than_is_said(self):
        for size in (("--capacity", 10_000_000_000, "--fpr", 0.01),
                     ("--bits", 1 << 34, "--hashes", 4),
                     ("--kind", "counting", "--bits", 1 << 32, "--hashes", 4),
                     ("--capacity", 10_000_000_000, "--kind", "scalable")):
            with self.subTest(size):
                ended = self.filter.ended("build", *size, "-o", "large", keys=NUMBERS)
                self.assertEqual(2, ended.returncode)
                self.assertIn(b"--memory-max", ended.stderr)
        ended = self.filter.ended("build", "--memory-max", "32KiB", "-o", "grown",
                                  keys=range(100_000))
        self.assertEqual(2, ended.returncode)
        self.assertIn(b"accepted: up to 32768 (--memory-max)", ended.stderr)
        self.filter.run("build", "--memory-max", "1MiB", "-o", "grown", keys=range(100_000))

    def test_keys_of_unions_and_intersections_are_estimated(self):
        for kind in ("plain", "counting"):
            for layout in ("classic", "partitioned", "blocked", "split"):
                with self.subTest(kind=kind, layout=layout):
                    size = ("--kind", kind, "--capacity", 1000, "--fpr", 0.01, "--layout", layout)
                    for name, keys in (("a", range(1, 101)), ("b", range(50, 151)),
                                       ("c", range(500, 600))):
                        self.filter.run("build", *size, "-o", name, keys=keys)
                    for deed, names, expected in (
                            ("union", "a a", 100), ("union", "a b", 150), ("union", "a b c", 250),
                            ("intersect", "a b", 51), ("intersect", "a a", 100),
                            ("intersect", "a c", 0)):
                        self.filter.run(deed, *names.split(), "-o", "out")
                        said = self.info("out")
                        error = self.info("b")["keys_error"]
                        self.assertTrue(0 < error < 5)
                        self.assertLess(abs(said["keys"] - expected), 4.5 * error, (deed, names))
        self.filter.run("build", *SIZE, "--kind", "scalable", "-o", "grows", keys=range(100))
        self.filter.run("union", "grows", "grows", "-o", "out")
        self.assertEqual(100, self.info("out")["keys"])

    def test_a_saturated_filter_has_no_count(self):
        for kind in ("plain", "counting"):
            ended = self.filter.ended("build", "--kind", kind, "--bits", 100, "--hashes", 3, "-o",
                                      "full", keys=NUMBERS)
            self.assertNotIn(b"inf", ended.stderr)
            self.assertIn(b"saturated", ended.stderr)
            said = self.info("full")
            self.assertIsNone(said["keys"])
            self.assertIsNone(said["keys_estimated"])
            self.assertIsNone(said["keys_error"])
        self.filter.run("build", "--bits", 100, "--hashes", 3, "-o", "full", keys=NUMBERS)
        told = json.loads(self.filter.run("convert", "full", "--to", "bloomnames-json", "-o", "-"))
        self.assertIsNone(told["keys"])
        self.filter.run("convert", "full", "--to", "bloomnames-json", "-o", "full.json")
        self.assertIsNone(self.info("full.json")["keys"])

    def test_help_says_what_removing_strangers_does(self):
        for words in (("remove", "--help"), ("build", "--help")):
            text = " ".join(self.filter.run(*words).split())
            self.assertIn("never added", text)
        self.assertIn("never added", " ".join(self.filter.run("remove", "--help").splitlines()[:3]))

    def test_a_full_disk_is_exit_2(self):
        commands = ["--help", "--version", "test f", "test -v f", "test -c f", "info f",
                    "info --json f", "sizing --bits 1000 --fpr 0.1", "convert f --to raw -o -",
                    "join f f", "join f f -o -", "hashes --keys 10 --filters 2 --rounds 1",
                    "build --bits 100000 -o -", "union f f -o -"]
        with open("/dev/full", "wb") as full:
            for command in commands:
                with self.subTest(command):
                    ended = self.filter.ended(*command.split(), keys=[*NUMBERS, "x"], stdout=full)
                    self.assertEqual(2, ended.returncode, ended.stderr)
                    self.assertEqual(b"encore-filter: cannot write to standard output: "
                                     b"No space left on device\n", ended.stderr)
        ended = self.filter.ended("build", *SIZE, "-o", "/dev/full", keys=NUMBERS)
        self.assertEqual(2, ended.returncode)
        self.assertEqual(
            b"encore-filter build: cannot write /dev/full: No space left on device\n", ended.stderr)

    def test_a_closed_pipe_ends_the_work(self):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            with subprocess.Popen(["yes", "1"], stdout=subprocess.PIPE) as endless:
                ended = subprocess.run(
                    [self.filter.program, "test", "f"], stdin=endless.stdout, stdout=writing,
                    stderr=subprocess.PIPE, cwd=self.directory, timeout=60, check=False)
                endless.stdout.close()
                stop_process(endless)
        finally:
            os.close(writing)
        self.assertEqual(2, ended.returncode)
        self.assertEqual(b"encore-filter: cannot write to standard output: Broken pipe\n",
                         ended.stderr)

    def test_a_file_that_cannot_grow_is_left_as_it_was(self):
        before = (self.directory / "f").read_bytes()
        script = "ulimit -f 1; seq 5000 | $F build --bits 800000 -o f"
        ended = subprocess.run(["bash", "-c", "trap '' XFSZ; " + script], cwd=self.directory,
                               capture_output=True, check=False,
                               env=clean_environment(F=self.filter.program))
        self.assertEqual((2, b"encore-filter build: cannot write f: File too large\n"),
                         (ended.returncode, ended.stderr))
        self.assertEqual(before, (self.directory / "f").read_bytes())
        self.assertEqual(["f"], self.names())

    def test_an_interrupt_leaves_the_file_as_it_was(self):
        before = (self.directory / "f").read_bytes()
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([self.filter.program, "add", "f"], stdin=subprocess.PIPE,
                                  cwd=self.directory) as adding:
                # More than a pipe holds: it reads.
                adding.stdin.write(b"x\n" * 1000000)
                adding.stdin.flush()
                adding.send_signal(number)
                self.assertEqual(-number, adding.wait(60))
            self.assertEqual(before, (self.directory / "f").read_bytes())
            self.assertEqual(["f"], self.names())

    def test_an_interrupt_while_it_writes_leaves_nothing_beside_the_file(self):
        before = (self.directory / "f").read_bytes()
        strace = next((path for path in ("/usr/bin/strace", "/bin/strace") if os.access(path, os.X_OK)),
                      None)
        if not strace:
            self.skipTest("strace is not installed")
        # The signal arrives in the call that syncs the new file next to the old one.
        ended = subprocess.run(
            [strace, "-f", "-qq", "-o", "trace", "-e", "trace=fsync", "-e", "inject=fsync:signal=INT",
             self.filter.program, "add", "f"], input=b"x\n", cwd=self.directory, check=False,
            stderr=subprocess.PIPE)
        if b"ptrace" in ended.stderr:
            self.skipTest("strace may not trace here")
        trace = (self.directory / "trace").read_text()
        self.assertIn("fsync", trace)
        self.assertIn("killed by SIGINT", trace)
        self.assertEqual(before, (self.directory / "f").read_bytes())
        self.assertEqual(["f", "trace"], self.names())

    def test_a_terminal_sees_how_far_long_work_is(self):
        os.mkfifo(self.directory / "keys")
        terminal = Terminal(self, [self.filter.program, "add", "f", "keys"], cwd=self.directory)
        with open(self.directory / "keys", "wb") as keys:
            keys.write(b"x" * 2047 + b"\n")
            keys.flush()
            terminal.wait_until_shown("add  2KiB")
        self.assertEqual((0, ""), terminal.end())


class Server(http.server.ThreadingHTTPServer):
    """Answers every request with `answer`, (status, fields, body), and keeps the requests."""

    daemon_threads = True

    def __init__(self):
        self.requests, self.answer = [], (404, {}, b"")
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append((self.path, dict(self.headers)))
                status, fields, body = server.answer
                if self.path == "/moved":
                    status, fields, body = 302, {"Location": "/filter", "ETag": '"of the redirect"'}, b""
                elif fields.get("ETag") and fields["ETag"] == self.headers.get("If-None-Match"):
                    status, body = 304, b""
                self.send_response(status)
                for name, value in {"Content-Length": len(body), **fields}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass
        super().__init__(("127.0.0.1", 0), Handler)


class Fetch(Case):
    def setUp(self):
        super().setUp()
        self.filter = EncoreFilter(self)
        self.server = Server()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.filter.run("build", *SIZE, "-o", "source", keys=NUMBERS)
        self.body = (self.directory / "source").read_bytes()
        self.serve()

    def serve(self, status=200, body=None, **fields):
        self.server.answer = status, {"ETag": '"one"', **fields}, self.body if body is None else body

    def fetch(self, path="/filter", status=0, *options):
        ended = self.filter.ended("fetch", self.base + path, "-o", "f", *options)
        self.assertEqual(status, ended.returncode, ended.stderr)
        return (ended.stdout if status == 0 else ended.stderr).decode()

    def condition(self):
        return self.server.requests[-1][1].get("If-None-Match")

    def test_only_what_has_changed_is_sent_again(self):
        self.assertEqual(f"{len(self.body)} bytes, encore\n", self.fetch())
        self.assertIsNone(self.condition())
        self.assertEqual(self.body, (self.directory / "f").read_bytes())
        self.assertEqual("not modified\n", self.fetch())
        self.assertEqual('"one"', self.condition())
        self.assertEqual(self.body, (self.directory / "f").read_bytes())
        self.serve(ETag='"two"')
        self.assertEqual(f"{len(self.body)} bytes, encore\n", self.fetch())
        self.assertEqual("not modified\n", self.fetch())
        self.assertEqual('"two"', self.condition())

    def test_the_etag_is_for_its_url_and_its_file(self):
        self.fetch()
        self.fetch("/other")
        self.assertIsNone(self.condition())
        self.fetch("/other")
        self.assertEqual('"one"', self.condition())
        self.filter.run("add", "f", keys=["x"])
        self.fetch("/other")
        self.assertIsNone(self.condition())
        (self.directory / "f").unlink()
        self.fetch("/other")
        self.assertIsNone(self.condition())

    def test_without_an_etag_all_is_asked_for(self):
        self.server.answer = 200, {}, self.body
        self.fetch()
        self.fetch()
        self.assertIsNone(self.condition())

    def test_a_place_that_cannot_be_read_is_written_all_the_same(self):
        os.mkfifo(self.directory / "f")
        with subprocess.Popen(["cat", self.directory / "f"], stdout=subprocess.PIPE) as reader:
            self.fetch()
            self.assertEqual(self.body, reader.stdout.read())

    def test_redirects_and_content_codings_are_followed(self):
        self.serve(body=gzip.compress(self.body), **{"Content-Encoding": "gzip"})
        self.assertEqual(f"{len(self.body)} bytes, encore\n", self.fetch("/moved"))
        self.assertEqual(["/moved", "/filter"], [path for path, _ in self.server.requests])
        self.assertEqual("not modified\n", self.fetch("/moved"))
        self.assertEqual('"one"', self.condition())

    def test_what_is_no_filter_leaves_the_file_as_it_was(self):
        self.fetch()
        for words, answer in {
                "response with status 404": {"status": 404},
                "response with status 304": {"status": 304, "body": b"", "ETag": '"x"'},
                "begin like no filter": {"body": b"<html>"},
                "the checksum does not match": {"body": self.body[:-1]},
                "it may be cut short": {"body": b"0x80000000"},
                "bytes remaining to read": {"Content-Length": len(self.body) + 1},
                "more than 99328 bytes": {"body": gzip.compress(bytes(10**7)),
                                         "Content-Encoding": "gzip"}}.items():
            with self.subTest(words):
                self.serve(**answer)
                (self.directory / "f.etag").unlink(missing_ok=True)
                limit = ("--limit", "97KiB") if "99328" in words else ()
                self.assertIn(words, self.fetch("/filter", 2, *limit))
                self.assertEqual(self.body, (self.directory / "f").read_bytes())
        ended = self.filter.ended("fetch", "http://127.0.0.1:1/", "-o", "f")
        self.assertEqual(2, ended.returncode)
        self.assertIn(b"http://127.0.0.1:1/: Failed to connect", ended.stderr)
        self.assertEqual(["f", "source"],
                         sorted(path.name for path in self.directory.iterdir()))


if __name__ == "__main__":
    unittest.main()
