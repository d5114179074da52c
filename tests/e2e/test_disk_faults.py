"""Disks that fail under a running proxy: the device's calls end in an error, for one of two disks,
injected by strace into the process as it runs. No answer is ever wrong, what the other disk has
stays, and a purge that was answered holds."""

import contextlib
import http.client
import os
import pathlib
import re
import signal
import subprocess
import unittest

from client import field
from harness import MEMCHECK, SLOWDOWN, carries, eventually, need_program
from test_disk_tier import KIB, DiskCase


class TwoDisks(DiskCase):
    def start_two(self, size="32MiB", **sections):
        if MEMCHECK or carries("__tsan_init"):
            raise unittest.SkipTest("strace and memcheck or the thread sanitizer: one at a time")
        self.strace = need_program("strace")
        self.paths = [self.directory / f"disk-{i}" for i in range(2)]
        self.journal = self.directory / "decisions"
        self.proxy = self.encore(**{
            "cache": {"memory": "2MiB"}, "admission": {"policy": "always"},
            "disk": [{"path": str(path), "size": size, "segment": "1MiB"} for path in self.paths],
            "log": {"decisions": str(self.journal)}, **sections})

    def value(self, name, disk, more=""):
        return self.proxy.metrics()[f'encore_disk_{name}{{disk="{disk}"{more}}}']

    def is_written(self):
        metrics = self.proxy.metrics()

        def waits(disk):
            placed = metrics[f'encore_disk_placed_bytes_total{{disk="{disk}",why="admit"}}']
            written = metrics[f'encore_disk_bytes_written_total{{disk="{disk}",why="admit"}}']
            return placed - written >= KIB * 8
        return not waits(0) and not waits(1)

    def fill(self, count, size=9 * KIB):
        names = [f"/{i}-{size + 131 * (i % 50)}" for i in range(count)]
        for name in names:
            self.check(name, self.get(name))
        eventually(self.is_written, "what waits is on disk")
        return names

    def is_loaded(self):
        return all(self.value("loading", disk) == 0 for disk in range(2))

    def start_again(self, how=signal.SIGTERM):
        self.restart(how)
        eventually(self.is_loaded, "all is loaded")

    @contextlib.contextmanager
    def failing(self, calls, disk, how="error=EIO"):
        """These calls for this disk's file, until the block ends."""
        tracer = self.trace(calls, disk, how)
        while not self.is_traced():
            # A thread that began while strace took hold of the others goes on untraced.
            self.end_trace(tracer)
            tracer = self.trace(calls, disk, how)
        try:
            yield
        finally:
            self.end_trace(tracer)

    def trace(self, calls, disk, how):
        said = self.directory / "strace.said"
        with open(said, "wb") as log:
            # A process of its own group, for it is stopped with SIGINT and detaches then.
            tracer = subprocess.Popen(
                [self.strace, "-f", "-p", str(self.proxy.process.pid), "-P", str(self.paths[disk]),
                 "-o", os.devnull, "-e", f"trace={calls}", "-e", f"inject={calls}:{how}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(lambda: tracer.poll() is None and tracer.kill())
        eventually(lambda: b"attached" in said.read_bytes() or tracer.poll() is not None,
                   "strace is at work")
        if tracer.poll() is not None:
            raise unittest.SkipTest("no process may be traced here: " + said.read_text())
        return tracer

    def end_trace(self, tracer):
        tracer.send_signal(signal.SIGINT)
        tracer.wait(60 * SLOWDOWN)

    def is_traced(self):
        tasks = pathlib.Path(f"/proc/{self.proxy.process.pid}/task").iterdir()
        return all("TracerPid:\t0\n" not in (task / "status").read_text() for task in tasks)

    def ask_all(self, names):
        """How many were hits; every answer is checked."""
        hits = 0
        for name in names:
            answer = self.get(name)
            self.assertEqual(self.versions.get(name, 1), self.check(name, answer), name)
            hits += "; hit" in field(answer, "Cache-Status")
        return hits

    def replays(self):
        """Stops it; the journal says what it decided."""
        self.proxy.stop()
        said = self.run_client([os.environ["ENCORE_SIM"], "verify", self.journal, "--config",
                                self.proxy.config_path]).stdout.decode()
        self.assertRegex(said, r"[0-9]{3,} events, 0 differences")

    def purge_url(self, name):
        """Whether it was answered as done."""
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port,
                                                timeout=30 * SLOWDOWN)
        with contextlib.closing(connection):
            connection.request("POST", "/purge?url=" + self.origin.url(name))
            answer = connection.getresponse()
            answer.read()
            self.assertIn(answer.status, (200, 500))
            return answer.status == 200


class Reads(TwoDisks):
    def test_a_disk_that_cannot_be_read_leaves_service_and_the_other_stays(self):
        self.start_two()
        names = self.fill(500)
        self.start_again()
        on_disk = [self.value("objects", disk) for disk in range(2)]
        self.assertGreater(min(on_disk), 150)
        with self.failing("pread64,preadv", 0):
            hits = self.ask_all(names)
            self.assertEqual(0, self.value("read_errors_total", 1))
            self.assertGreater(hits, on_disk[1] / 2)
            # A hundred failures in a row, and it is left alone. On a busy machine many reads take too
            # long, which are no failures: it takes more rounds.
            for _ in range(200):
                if self.value("offline", 0):
                    break
                self.ask_all(names)
            self.assertGreater(self.value("read_errors_total", 0), 50)
            self.assertEqual(1, self.value("offline", 0))
            self.assertEqual(0, self.value("offline", 1))
            self.assertGreater(self.ask_all(names), len(names) / 2)
        self.assertRegex(self.proxy.output(), r"disk \S+disk-0: .*out of service")
        # Objects that change meanwhile and were purged must not return with the disk.
        changed = names[::10]
        for name in changed:
            self.versions[name] = 2
            self.assertTrue(self.purge_url(name), name)
        self.ask_all(names)
        self.start_again(signal.SIGKILL)
        self.ask_all(names)
        self.ask_all(names)
        self.replays()


class Writes(TwoDisks):
    def test_a_disk_that_cannot_be_written_costs_no_answer(self):
        self.start_two()
        before = self.fill(200)
        with self.failing("pwrite64,pwritev,pwritev2", 0):
            after = [f"/w/{i}-{30 * KIB}" for i in range(300)]
            for name in after:
                self.check(name, self.get(name))
            eventually(lambda: self.value("write_errors_total", 0) >= 5, "writes fail")
            self.assertGreater(self.ask_all(after), 50)
            self.assertGreater(self.ask_all(before), 60)
            eventually(lambda: self.value("writes_paused", 0) or self.value("offline", 0),
                       "it is left alone")
            purged = before[::20]
            for name in purged:
                self.versions[name] = 2
            done = [name for name in purged if self.purge_url(name)]
            self.ask_all(set(before) - (set(purged) - set(done)))
        # An object whose purge was confirmed never returns; the others had no confirmation.
        self.start_again(signal.SIGKILL)
        self.ask_all(done)
        for name in before + after:
            self.check(name, self.get(name))
        self.replays()

    def test_a_disk_that_does_not_sync_loses_no_purge(self):
        self.start_two()
        names = self.fill(100)
        with self.failing("fdatasync,fsync", 0):
            for name in names[::7]:
                self.versions[name] = 2
            done = [name for name in names[::7] if self.purge_url(name)]
        self.start_again(signal.SIGKILL)
        self.ask_all(done)
        for name in names:
            self.check(name, self.get(name))
        self.replays()

    def test_a_device_without_room_costs_no_answer(self):
        self.start_two()
        with self.failing("pwrite64,pwritev,pwritev2", 0, "error=ENOSPC"):
            names = [f"/f/{i}-{20 * KIB}" for i in range(200)]
            self.ask_all(names)
            self.assertGreater(self.ask_all(names), 30)
        self.replays()


class Slow(TwoDisks):
    def test_a_disk_that_hangs_is_left_to_itself(self):
        self.start_two()
        names = self.fill(300)
        self.start_again()
        with self.failing("pread64,preadv", 0, f"delay_enter={3 * SLOWDOWN}s"):
            self.ask_all(names[:12])
            # Half of them have their record there: the origin was asked, after a second.
            again = [name for name in names[:12] if self.asked[name] > 1]
        self.assertGreaterEqual(len(again), 2)
        self.assertGreater(self.ask_all(names), 100)
        self.replays()


class FullFileSystem(TwoDisks):
    def test_a_file_system_without_room_is_said_at_the_start_and_nothing_is_left_there(self):
        self.start_two(start=False)
        small = self.directory / "small"
        small.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(small)],
                                 stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("nothing may be mounted here: " + mounted.stderr.decode())
        self.addCleanup(subprocess.run, ["umount", str(small)], check=False)
        self.paths[0] = small / "disk"
        self.proxy.sections["disk"][0]["path"] = str(self.paths[0])
        self.proxy.write_config()
        for arguments in ([], ["--check-config"]):
            ended = self.run_client([self.proxy.program, "--config", self.proxy.config_path,
                                     *arguments], check=False)
            said = ended.stdout.decode()
            self.assertNotEqual(0, ended.returncode, said)
            self.assertRegex(said, re.escape(str(self.paths[0])) + r".*(room|space)")
            self.assertEqual([], os.listdir(small))
        # Objects that fit are served from there.
        self.proxy.sections["disk"][0]["size"] = "6MiB"
        self.proxy.start()
        names = self.fill(100)
        self.start_again()
        self.assertGreater(self.ask_all(names), 90)
        self.replays()


if __name__ == "__main__":
    unittest.main()
