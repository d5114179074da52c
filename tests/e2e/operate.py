"""The commands that operate a running proxy, as scripts and as people at a terminal run them."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time

from harness import DEADLINE, clean_environment, die_with_parent, stop_process

DONE, REFUSED, USAGE, UNREACHABLE = 0, 1, 2, 3


class Ended:
    """An ended command: its status and what it has said."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def json(self):
        return json.loads(self.out)


class Operator:
    """Runs commands of `program`; each begins with `arguments`."""

    def __init__(self, case, program, *arguments):
        self.case, self.command = case, [str(each) for each in (program, *arguments)]

    def run(self, *words, status=DONE, **options):
        ended = subprocess.run([*self.command, *map(str, words)], stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, env=clean_environment(),
                               timeout=DEADLINE, check=False, **options)
        self.case.assertEqual(status, ended.returncode, f"{words}: {ended.stdout}{ended.stderr}")
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def start(self, *words):
        """A process of the command, its output line by line; stopped at the end of the test."""
        process = subprocess.Popen([*self.command, *map(str, words)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=clean_environment(), preexec_fn=die_with_parent)
        self.case.addCleanup(process.stdout.close)
        self.case.addCleanup(process.stderr.close)
        self.case.addCleanup(stop_process, process)
        return process

    def screen(self, *words, lines=24, columns=100):
        return Screen(self.case, [*self.command, *map(str, words)], lines, columns)


class Screen:
    """A command whose standard output is a terminal."""

    def __init__(self, case, command, lines, columns):
        self.case, self.shown = case, ""
        self.master, slave = pty.openpty()
        case.addCleanup(os.close, self.master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                                        env=clean_environment(), preexec_fn=die_with_parent)
        os.close(slave)
        case.addCleanup(stop_process, self.process)

    def read(self):
        """Adds what has come; false at the end."""
        if not select.select([self.master], [], [], DEADLINE)[0]:
            self.case.fail(f"nothing was shown any more: {self.shown[-500:]}")
        try:
            text = os.read(self.master, 65536)
        except OSError:  # it has ended
            return False
        self.shown += text.decode().replace("\r\n", "\n")
        return bool(text)

    def wait_for(self, found):
        """Waits until `found(shown)` is true and returns that."""
        end = time.monotonic() + DEADLINE
        while not (value := found(self.shown)):
            if time.monotonic() > end or not self.read():
                self.case.fail(f"was not shown: {self.shown[-1500:]}")
        return value

    def end(self):
        while self.read():
            pass
        return self.process.wait(DEADLINE)
