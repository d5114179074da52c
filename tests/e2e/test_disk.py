"""Full disks, kills without warning, and reloads by the dozen."""

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
import unittest

from client import Client, NoResponse, field, get
from harness import Case, clean_environment, die_with_parent, eventually
from origin import Origin, fresh


class Disk(Case):
    def start_limited(self, encore, blocks):
        """Starts encore so that no file grows beyond N blocks of 512 bytes: its writes then fail as
        on a full disk, with EFBIG for ENOSPC."""
        encore.write_config()
        with open(encore.output_path, "ab") as output:
            encore.process = subprocess.Popen(
                ["sh", "-c", f"ulimit -f {blocks}; exec \"$@\"", "sh", encore.program,
                 "--config", str(encore.config_path)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=clean_environment(), preexec_fn=die_with_parent)
        self.addCleanup(encore.stop)
        eventually(lambda: encore.process.poll() is not None or encore.ready(), "encore is ready")
        self.assertIsNone(encore.process.poll(), encore.output())
        return encore

    def test_a_log_that_cannot_grow_costs_records_and_nothing_else(self):
        origin = Origin(self, default=fresh(b"page"))
        encore = self.start_limited(self.encore(start=False), 8)
        with Client(encore.port) as client:
            for number in range(300):
                self.assertEqual(b"page", client.ask(origin.url(f"/{number % 50}")).body)
        eventually(lambda: "cannot write log" in encore.output(), "the failure is told")
        lines = encore.access_path.read_bytes()
        self.assertLessEqual(len(lines), 8 * 512)
        self.assertEqual(1, len(re.findall("cannot write log", encore.output())))
        # Once there is room again records are written whole; those that still waited come first.
        turns = iter(range(100))

        def written_again():
            encore.access_path.rename(encore.access_path.with_suffix(f".{next(turns)}"))
            encore.signal(signal.SIGUSR1)
            eventually(encore.access_path.exists, "the log is opened anew")
            get(encore.port, origin.url("/after"))
            eventually(lambda: encore.access_path.stat().st_size > 0, "something is logged")
            whole = [line for line in encore.access_path.read_text().split("\n")[:-1]
                     if line.startswith("{") and line.endswith("}")]
            return any("/after" in json.loads(line)["url"] for line in whole)
        eventually(written_again, "records are logged again")

    def test_a_state_that_cannot_be_saved_leaves_the_one_before(self):
        origin = Origin(self, default=fresh(b"page"))
        state = self.directory / "state"
        encore = self.encore(state={"directory": str(state)})
        get(encore.port, origin.url("/before"))
        encore.stop()
        saved = {f: f.read_bytes() for f in state.rglob("*") if f.is_file()}
        self.start_limited(encore, 4)
        said = field(get(encore.port, origin.url("/before")), "Cache-Status")
        self.assertIn("second-request", said)
        encore.stop()
        self.assertIn("cannot save the state", encore.output())
        self.assertEqual(saved, {f: f.read_bytes() for f in state.rglob("*") if f.is_file()})

    def test_a_full_disk_at_the_start_is_no_reason_not_to_start(self):
        origin = Origin(self, default=fresh(b"page"))
        state = self.directory / "state"
        encore = self.encore(state={"directory": str(state)}, log={"access": ""})
        encore.stop()
        self.start_limited(encore, 0)
        self.assertEqual(b"page", get(encore.port, origin.url("/page")).body)


class Killed(Case):
    def test_after_a_kill_what_was_saved_is_remembered_and_the_rest_cleanly_absent(self):
        origin = Origin(self, default=fresh(b"page"))
        state = self.directory / "state"
        encore = self.encore(state={"directory": str(state), "save_interval": "1s"},
                             expect_exit=-signal.SIGKILL)
        for number in range(30):
            get(encore.port, origin.url(f"/old{number}"))

        def files():
            found = {}
            for file in state.iterdir():
                try:
                    status = file.stat()
                except FileNotFoundError:  # one being written has got its own name meanwhile
                    continue
                if status.st_size > 1000:
                    found[file] = status.st_mtime_ns
            return found
        before = files()
        for _ in range(2):  # the second save began after all was asked
            eventually(lambda: files() and files() != before, "the state is saved")
            before = files()
        encore.signal(signal.SIGKILL)
        encore.wait_for_exit()
        encore.stop()
        encore.expect_exit = 0
        encore.start()
        for number in range(30):
            said = field(get(encore.port, origin.url(f"/old{number}")), "Cache-Status")
            self.assertIn("second-request", said)
        said = field(get(encore.port, origin.url("/new")), "Cache-Status")
        self.assertIn("first-request", said)

    def test_kills_at_any_time_never_leave_a_state_that_is_refused(self):
        origin = Origin(self, default=fresh(b"page"))
        state = self.directory / "state"
        rng = random.Random(3)
        encore = self.encore(state={"directory": str(state), "save_interval": "1s"}, start=False,
                             expect_exit=-signal.SIGKILL)
        for turn in range(4):
            encore.start()
            end = time.monotonic() + 0.9 + rng.random() * 0.4
            with Client(encore.port) as client:
                while time.monotonic() < end:
                    client.ask(origin.url(f"/{turn}/{rng.random()}"))
            encore.signal(signal.SIGKILL)
            encore.wait_for_exit()
            encore.stop()
        encore.expect_exit = 0
        encore.start()
        self.assertEqual(b"page", get(encore.port, origin.url("/after")).body)
        self.assertNotIn("starting with an empty filter", encore.output())


class Reloads(Case):
    def test_a_storm_of_reloads_under_load_loses_no_request_and_no_memory(self):
        body = os.urandom(20_000)
        origin = Origin(self, default=fresh(body))
        encore = self.encore()
        for _ in range(3):
            get(encore.port, origin.url("/kept"))
        get(encore.port, origin.url("/seen-once"))
        stop, wrong = threading.Event(), []

        def load(seed):
            rng = random.Random(seed)
            with Client(encore.port) as client:
                while not stop.is_set():
                    try:
                        answer = client.ask(origin.url(f"/{rng.randrange(60)}"))
                        if answer.body != body:
                            wrong.append(answer.status)
                    except (NoResponse, OSError) as error:
                        wrong.append(error)
                        return
        threads = [threading.Thread(target=load, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for turn in range(60):
            encore.sections["limits"] = {"pipeline": 1 + turn % 7}
            if turn % 5 == 4:
                encore.config_path.write_text("[cache\nmemory = ")  # one that fails
            else:
                encore.write_config()
            encore.signal(signal.SIGHUP)
            time.sleep(0.02)
        encore.write_config()
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)
        said = field(get(encore.port, origin.url("/kept")), "Cache-Status")
        self.assertIn("; hit", said)
        # A reload with the same admission forgets nothing.
        said = field(get(encore.port, origin.url("/seen-once")), "Cache-Status")
        self.assertIn("second-request", said)
        self.assertGreater(encore.stats()["reloads"], 0)


if __name__ == "__main__":
    unittest.main()
