"""Runs of the load that reads all connections in turn."""

import pathlib
import re
import subprocess

from measure import Problem
from peers import LOAD_CPU, pinned

WARM_MS = 500


class LoadRun:
    """One run of fair_load; `result` waits for its end."""

    def __init__(self, programs, port, target, host, connections, milliseconds, *more, first=False):
        command = [pathlib.Path(programs) / "bench" / "fair_load", f"--port={port}",
                   f"--connections={connections}", f"--milliseconds={milliseconds}",
                   f"--warm={WARM_MS}", *more, target, host]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True,
                                        preexec_fn=pinned(LOAD_CPU, first))

    def result(self):
        """(requests, bytes, p50, p99, max), in milliseconds"""
        said = self.process.communicate(timeout=120)[0]
        found = re.search(r"^RESULT (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)$", said, re.M)
        if not found:
            raise Problem(said.strip()[-100:] or "fair_load ended")
        requests, size, failures, *times = map(int, found.groups())
        if failures:
            raise Problem(f"{failures} of {requests} failed")
        return requests, size, *(time / 1000 for time in times)
