"""Runs commands with a time limit, and ends the processes that they leave behind."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import threading
import time
import uuid

MARK = "ENCORE_MUTATE_RUN"
MEMORY_BYTES_MAX = 12 << 30  # limit of a process: ends a mutant that allocates endlessly
FILE_BYTES_MAX = 2 << 30
GONE_SECONDS_MAX = 10


@dataclasses.dataclass(frozen=True)
class Result:
    outcome: str  # passed, failed, or time
    seconds: float
    output: str


class Stopped(Exception):
    """The run was interrupted."""


class Processes:
    """Thread-safe. After stop() nothing starts any more."""

    def __init__(self):
        self.mutex = threading.Lock()
        self.marks = {}  # mark -> Popen
        self.stopped = False

    def run(self, command, *, cwd, log, timeout, environment=None):
        """Runs a command in a session of its own; `log` is the file that takes its output."""
        mark = uuid.uuid4().hex
        values = {**os.environ, **(environment or {}), MARK: mark}
        limits = ["prlimit", "--core=0", f"--fsize={FILE_BYTES_MAX}", f"--data={MEMORY_BYTES_MAX}"]
        started = time.monotonic()
        with open(log, "wb") as output:
            with self.mutex:
                if self.stopped:
                    raise Stopped
                process = subprocess.Popen(
                    [*limits, *command], cwd=cwd, env=values, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, start_new_session=True)
                self.marks[mark] = process
            try:
                status = process.wait(timeout)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                self.end(mark, process)
                with self.mutex:
                    del self.marks[mark]
        if self.stopped:
            raise Stopped
        outcome = "time" if status is None else "passed" if status == 0 else "failed"
        text = pathlib.Path(log).read_bytes()[-20000:].decode(errors="replace")
        return Result(outcome, time.monotonic() - started, text)

    def end(self, mark, process):
        """Ends a command's session, then those of its children that have made one of their own."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        end = time.monotonic() + GONE_SECONDS_MAX
        while (left := list(marked(mark))) and time.monotonic() < end:
            for each in left:
                try:
                    os.kill(each, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass

    def stop(self):
        with self.mutex:
            self.stopped = True
            for mark, process in self.marks.items():
                self.end(mark, process)


def marked(mark):
    """Processes with the mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    for each in pathlib.Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if wanted in (each / "environ").read_bytes().split(b"\0"):
                    yield int(each.name)
            except OSError:
                pass
