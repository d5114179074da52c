"""Runs encore-filter."""

import os
import subprocess
import unittest

from harness import DEADLINE, clean_environment


class EncoreFilter:
    """The program, in the directory of a test."""

    def __init__(self, case):
        self.case, self.program = case, os.environ.get("ENCORE_FILTER")
        if not self.program:
            raise unittest.SkipTest("ENCORE_FILTER does not name the program")

    def ended(self, *words, keys=(), **options):
        """Returns the ended process of a command line, given these keys on standard input."""
        text = keys if isinstance(keys, bytes) else "".join(f"{key}\n" for key in keys).encode()
        options.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([self.program, *map(str, words)], input=text, stderr=subprocess.PIPE,
                              cwd=self.case.directory, env=clean_environment(), timeout=DEADLINE,
                              check=False, **options)

    def run(self, *words, keys=(), status=0):
        """Returns its output; fails if it exits otherwise."""
        ended = self.ended(*words, keys=keys)
        self.case.assertEqual(status, ended.returncode, ended.stderr.decode())
        return ended.stdout.decode()
