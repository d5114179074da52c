"""A proxy whose process is replaced while it serves, and clients that see whether a request fails."""

import ctypes
import http.client
import json
import os
import pathlib
import signal
import socket
import threading

from client import Client, NoResponse, field
from harness import DEADLINE, SANITIZER_REPORT, SLOWDOWN, Encore, eventually

PR_SET_CHILD_SUBREAPER = 36


class UpgradingEncore(Encore):
    """As Encore; `upgrade` replaces its process, and all of its processes are ended and checked."""

    def __init__(self, case, **sections):
        # Successors whose parent has ended become children of the test, which reaps them.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.serving = None
        self.replaced = []  # process ids, the oldest first
        self.killed = set()  # those of them that the test has killed
        case.addCleanup(self.kill_all)  # after stop()
        super().__init__(case, **sections)

    def start(self, before_ready=None):
        super().start(before_ready)
        self.serving = self.process.pid

    def post_upgrade(self):
        """(status, text) of POST /upgrade."""
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=2 * DEADLINE)
        try:
            connection.request("POST", "/upgrade")
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def upgrade(self):
        """Replaces the process; returns the id of the new one, which serves."""
        status, text = self.post_upgrade()
        self.case.assertEqual(200, status, f"{text}\n{self.output()}")
        result = json.loads(text)
        self.case.assertIs(True, result["upgraded"])
        self.replaced.append(self.serving)
        self.serving = result["process"]
        return self.serving

    def refused(self):
        """Asks for an upgrade that must fail; returns the reason."""
        status, text = self.post_upgrade()
        self.case.assertEqual(409, status, self.output())
        head = "409 Conflict\nnothing has changed: "
        self.case.assertTrue(text.startswith(head), text)
        return text[len(head):]

    @staticmethod
    def ended(process):
        """The exit code of a process once it has ended, else None."""
        try:
            found, status = os.waitpid(process, os.WNOHANG)
        except ChildProcessError:
            return 0 if not pathlib.Path(f"/proc/{process}").exists() else None
        return None if found == 0 else os.waitstatus_to_exitcode(status)

    def exit_code(self, process):
        """Waits for its end."""
        if process == self.process.pid:
            return self.process.wait(DEADLINE)
        codes = []

        def is_over():
            code = self.ended(process)
            if code is not None:
                codes.append(code)
            return codes
        eventually(is_over, f"process {process} ends")
        return codes[0]

    def signal(self, number):
        os.kill(self.serving, number)

    def kill_all(self):
        for process in [*self.replaced, self.serving]:
            if process and pathlib.Path(f"/proc/{process}/exe").exists():
                try:
                    if os.path.basename(os.readlink(f"/proc/{process}/exe")).startswith("encore"):
                        os.kill(process, signal.SIGKILL)
                except OSError:
                    pass

    def stop(self):
        if self.process is None:
            return
        if self.serving in (None, self.process.pid):
            super().stop()
            return
        os.kill(self.serving, signal.SIGTERM)
        codes = {process: self.exit_code(process) for process in [*self.replaced, self.serving]}
        self.process = None
        text = self.output_path.read_text(errors="replace")
        report = SANITIZER_REPORT.search(text)
        if report:
            self.case.fail(f"encore reported:\n{text[report.start():report.start() + 6000]}")
        bad = {process: code for process, code in codes.items() if code and process not in self.killed}
        self.case.assertEqual({}, bad, f"exit codes:\n{self.output()}")


class Load:
    """Threads that send requests until `stop`, and keep each failure."""

    def __init__(self, case):
        self.case, self.failures, self.counts = case, [], {}
        self.over = threading.Event()
        self.threads = []
        case.addCleanup(self.over.set)

    def add(self, name, one_round, count=1):
        """`one_round(state)` sends requests and returns how many; `state` is a dictionary of the
        thread's own."""
        def run():
            state = {}
            while not self.over.is_set():
                try:
                    done = one_round(state)
                    self.counts[name] = self.counts.get(name, 0) + done
                except Exception as error:  # pylint: disable=broad-except
                    self.failures.append(f"{name}: {error!r}")
                    state.clear()
        for _ in range(count):
            thread = threading.Thread(target=run, daemon=True)
            self.threads.append(thread)
            thread.start()

    def wait_for(self, name, more=5):
        """Until that load has had so many more requests answered."""
        before = self.counts.get(name, 0)
        eventually(lambda: self.counts.get(name, 0) >= before + more or self.failures,
                   f"{name} goes on")

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(DEADLINE)
        self.case.assertEqual([], self.failures[:10], f"{len(self.failures)} of {self.counts} failed")
        for name, count in self.counts.items():
            self.case.assertGreater(count, 0, name)


def kept_alive(port, url, body):
    """Requests on one connection, until a response says that it is the last."""
    def one_round(state):
        client = state.get("client")
        if client is None:
            client = state["client"] = Client(port)
        client.request(url)
        answer = client.read_response()
        if answer.status != 200 or answer.body != body:
            raise AssertionError(f"{answer.status} {answer.body[:100]!r}")
        if field(answer, "Connection") == "close":
            client.close()
            del state["client"]
        return 1
    return one_round


def one_shot(port, url, body):
    def one_round(_):
        with Client(port) as client:
            client.request(url, fields=[("Connection", "close")])
            answer = client.read_response()
            if answer.status != 200 or answer.body != body:
                raise AssertionError(f"{answer.status} {answer.body[:100]!r}")
        return 1
    return one_round
