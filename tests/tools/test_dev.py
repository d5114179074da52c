"""./dev: help is printed without anything being built or installed."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parent.parent.parent
BENCHES = ("--claim", "--disk-latency", "--disk-reads", "--fair", "--tls", "--intercept")
HELP = [("bench",), *(("bench", choice) for choice in BENCHES), ("fuzz",), ("fuzz", "--proxy"),
        ("simulate",), ("simulate", "--faults"), ("mutate",), ("crash",), ("package",), ("soak",), ("soak", "--disk"),
        ("soak", "--kills"), ("soak", "--servers"), ("test",), ("lint",), ("screenshots",),
        ("run",), ("build",), ("docs",), ("format",)]


class Help(unittest.TestCase):
    def setUp(self):
        """A path on which what builds and installs is there, and says so."""
        self.bin = pathlib.Path(tempfile.mkdtemp(prefix="encore-dev-"))
        self.addCleanup(shutil.rmtree, self.bin)
        self.called = self.bin / "called"
        for name in ("cmake", "ninja", "apt-get", "sudo", "ctest", "npm", "dpkg-query", "dpkg"):
            program = self.bin / name
            program.write_text(f"#!/bin/sh\necho {name} >>{self.called}\nexit 1\n")
            program.chmod(0o755)

    def ask(self, *arguments):
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}
        return subprocess.run([ROOT / "dev", *arguments], env=environment, capture_output=True,
                              text=True, timeout=60, check=False)

    def test_help_builds_and_installs_nothing(self):
        for arguments in HELP:
            for word in ("--help", "-h") if arguments == ("soak",) else ("--help",):
                with self.subTest(arguments=arguments, word=word):
                    answer = self.ask(*arguments, word)
                    self.assertEqual((0, ""), (answer.returncode, answer.stderr))
                    self.assertIn("sage: ", answer.stdout)
                    self.assertFalse(self.called.exists(), "something was built or installed")

    def test_help_is_of_what_was_asked_for(self):
        self.assertIn("--workloads", self.ask("bench", "--claim", "--help").stdout)
        self.assertIn("--only", self.ask("bench", "--help").stdout)
        proxy = self.ask("fuzz", "--proxy", "--help").stdout
        self.assertIn("--keep-going", proxy)
        self.assertNotIn("simulate", proxy)
        self.assertIn("--jobs N", self.ask("simulate", "--seed", "1", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
