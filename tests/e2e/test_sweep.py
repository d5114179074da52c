"""A sweep over several processes and on a Dask cluster: a killed worker costs time and no result."""

import os
import pathlib
import signal
import subprocess
import unittest

from harness import Case, clean_environment, eventually, free_port, listening, need_simulator, sanitized, stop_process

SWEEP = """traces = ["t.bin"]
[fixed]
admission = "always"
[sweep]
eviction = ["lru", "fifo", "sieve", "s3-fifo", "arc", "2q", "lfu", "slru", "clock", "gdsf"]
seed = { from = 1, to = 6 }
cache-size = ["1%", "10%"]
"""
TASKS = 60


# The distribution's, for which its packages are.
PYTHON = "/usr/bin/python3"


def has_dask():
    return subprocess.run([PYTHON, "-c", "import distributed"], capture_output=True, check=False).returncode == 0


class Sweep(Case):
    def setUp(self):
        super().setUp()
        program = need_simulator()
        programs = self.directory / "programs"
        programs.mkdir()
        (programs / "encore-sim").symlink_to(program)
        (programs / "python3").symlink_to(PYTHON)
        self.environment = clean_environment(PATH=f"{programs}:{os.environ['PATH']}")
        requests = 5000 if sanitized() else 100000
        self.sim("generate", "zipf", "--requests", str(requests), "--objects", "20000", "-o", "t.bin")
        (self.directory / "s.toml").write_text(SWEEP)

    def sim(self, *arguments, expect=0):
        ran = subprocess.run(["encore-sim", *arguments], cwd=self.directory, env=self.environment,
                             capture_output=True, text=True, timeout=180, check=False)
        self.assertEqual(expect, ran.returncode, ran.stderr)
        return ran

    def begin(self, command):
        process = subprocess.Popen(command, cwd=self.directory, env=self.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        self.addCleanup(stop_process, process)
        self.addCleanup(process.stderr.close)
        return process

    def done(self, directory):
        return len(list(pathlib.Path(self.directory, directory).glob("t-*.jsonl")))

    def check_equals_one_worker(self, directory):
        self.sim("sweep", "s.toml", "--out", "alone")
        self.assertEqual(TASKS, self.done(directory))
        for name in ("results.jsonl", "results.csv"):
            self.assertEqual((self.directory / "alone" / name).read_bytes(),
                             (self.directory / directory / name).read_bytes())
        self.assertEqual([], list((self.directory / directory).glob("*.lock")))

    def test_a_killed_process_costs_no_result(self):
        command = ["encore-sim", "sweep", "s.toml", "--out", "shared", "--threads", "1"]
        first = self.begin(command)
        eventually(lambda: self.done("shared") >= 2, "the first results")
        second = self.begin(command)
        eventually(lambda: self.done("shared") >= 4, "more results")
        first.send_signal(signal.SIGKILL)
        self.assertEqual(-signal.SIGKILL, first.wait(30))
        self.assertEqual(0, second.wait(180), second.stderr.read())
        self.check_equals_one_worker("shared")

    def test_the_listed_commands_make_the_results(self):
        listed = self.sim("sweep", "s.toml", "--out", "listed", "--list").stdout.splitlines()
        self.assertEqual(TASKS, len(listed))
        script = "\n".join(listed[: TASKS // 2])
        subprocess.run(["sh"], input=script, cwd="/", env=self.environment, text=True, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=180)
        self.assertIn(f"Missing: {TASKS // 2} tasks",
                      self.sim("sweep", "s.toml", "--out", "listed", "--merge", expect=1).stdout)
        left = self.sim("sweep", "s.toml", "--out", "listed", "--list").stdout.splitlines()
        self.assertEqual(listed[TASKS // 2:], left)
        self.sim("sweep", "s.toml", "--out", "listed")
        self.check_equals_one_worker("listed")

    def test_an_interrupted_sweep_goes_on_where_it_was(self):
        command = ["encore-sim", "sweep", "s.toml", "--out", "again", "--threads", "1"]
        process = self.begin(command)
        eventually(lambda: self.done("again") >= 2, "the first results")
        process.send_signal(signal.SIGINT)
        self.assertEqual(130, process.wait(30))
        before = self.done("again")
        self.assertLess(before, TASKS)
        self.sim("sweep", "s.toml", "--out", "again")
        self.check_equals_one_worker("again")

    @unittest.skipUnless(has_dask(), "python3-distributed is not installed")
    def test_a_killed_worker_of_a_cluster_costs_no_result(self):
        port = free_port()
        address = f"tcp://127.0.0.1:{port}"
        python = [PYTHON, "-m"]
        self.begin([*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port),
                    "--no-dashboard", "--no-show"])
        eventually(lambda: listening(port), "the scheduler")
        workers = [self.begin([*python, "distributed.cli.dask_worker", address, "--nthreads", "1",
                               "--no-nanny", "--no-dashboard", "--host", "127.0.0.1",
                               "--local-directory", str(self.directory / f"worker{n}")])
                   for n in range(2)]
        sweep = self.begin(["encore-sim", "sweep", "s.toml", "--out", "cluster", "--on", address])
        eventually(lambda: self.done("cluster") >= 4, "results of the cluster")
        os.killpg(workers[0].pid, signal.SIGKILL)
        self.assertEqual(0, sweep.wait(180), sweep.stderr.read())
        self.check_equals_one_worker("cluster")

    @unittest.skipUnless(has_dask(), "python3-distributed is not installed")
    def test_a_scheduler_that_is_not_there_is_an_error(self):
        ran = self.sim("sweep", "s.toml", "--on", f"tcp://127.0.0.1:{free_port()}", expect=2)
        self.assertRegex(ran.stderr, r"^encore-sim sweep: --on tcp://127\.0\.0\.1:\d+: error: ")


if __name__ == "__main__":
    unittest.main()
