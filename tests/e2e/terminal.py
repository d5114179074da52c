"""A command at a terminal: what it shows there while it works, and Ctrl-C."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import threading

from harness import DEADLINE, stop_process


class Terminal:
    """Runs a command with a terminal of its own as standard input and error; standard output is kept.

    `command` is a list, or text for bash. Ends with the test case.
    """

    def __init__(self, case, command, **options):
        self.master, slave = pty.openpty()
        case.addCleanup(os.close, self.master)
        if isinstance(command, str):
            command = ["bash", "-c", command]

        def take_terminal():
            # The test itself may have been started in a way that ignores it.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(command, stdin=slave, stderr=slave, stdout=subprocess.PIPE,
                                        preexec_fn=take_terminal, **options)
        os.close(slave)
        case.addCleanup(stop_process, self.process)
        self.case, self.shown, self.printed = case, "", b""
        self.reader = threading.Thread(target=self._keep_printed, daemon=True)
        self.reader.start()

    def _keep_printed(self):
        with self.process.stdout as stdout:
            self.printed = stdout.read()

    def wait_until_shown(self, pattern):
        """Waits until what was shown so far matches, in one of its lines, and returns the match."""
        expression = re.compile(pattern)
        while True:
            found = expression.search(self.shown)
            if found:
                return found
            if not select.select([self.master], [], [], DEADLINE)[0]:
                self.case.fail(f"not shown: {pattern}\n{self.shown[-500:]}")
            try:
                self.shown += os.read(self.master, 4096).decode(errors="replace")
            except OSError:  # it has ended
                self.case.fail(f"not shown by the end: {pattern}\n{self.shown[-500:]}")

    def wait_for_percent(self, title, percent):
        """Waits until the progress of `title` ("tune: windows") has come so far."""
        while True:
            match = self.wait_until_shown(re.escape(title) + r"  \[[# ]*\] +(\d+) %")
            if int(match.group(1)) >= percent:
                return
            self.shown = self.shown[match.end():]

    def press_control_c(self):
        os.write(self.master, b"\x03")

    def end(self):
        """(exit status, what stood on standard output) when it has ended."""
        status = self.process.wait(DEADLINE)
        self.reader.join(DEADLINE)
        return status, self.printed.decode()
