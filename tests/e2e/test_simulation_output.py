"""encore-sim says so, and exits with 2, where its standard output takes nothing more."""

import os
import subprocess
import unittest

from harness import Case, clean_environment, need_simulator

COMMANDS = [
    "--help", "--version", "theory --help",
    "blocks --events 100 --no-timing", "blocks --trace --hashes 2 --events 1000000000",
    "theory fill", "theory size", "theory capacity", "theory pair", "theory ring", "theory table",
    "theory layouts", "theory codes --filters 2", "theory fill --json",
    "generate zipf --requests 10 -o -", "generate zipf --requests 1000000 -o -",
    "generate akamai --requests 1000 --csv -o -",
    "stats trace.csv", "replay trace.csv --cache-size 1KiB", "replay trace.csv --json",
    "tune trace.csv", "drive trace.csv --config seeded.toml",
]


class Output(Case):
    def setUp(self):
        super().setUp()
        self.program = need_simulator()
        (self.directory / "trace.csv").write_text("time,key,size\n1,a,10\n2,a,10\n3,b,10\n")
        (self.directory / "seeded.toml").write_text('[admission]\nseed = "01"\n')

    def check(self, command, out, reason):
        with self.subTest(command):
            ran = subprocess.run([self.program, *command.split()], stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=subprocess.PIPE, text=True, cwd=self.directory,
                                 env=clean_environment(), timeout=60, check=False)
            self.assertEqual(2, ran.returncode, ran.stderr)
            # Output that failed while the work went on has no reason left at its end.
            self.assertIn("standard output" if "--trace" in command else reason, ran.stderr)
            self.assertEqual(1, ran.stderr.count("\n"), ran.stderr)

    def test_a_full_disk_is_exit_2(self):
        with open("/dev/full", "wb") as full:
            for command in COMMANDS:
                self.check(command, full, "No space left on device")

    def test_a_closed_pipe_is_exit_2_and_ends_the_work(self):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            for command in COMMANDS:
                self.check(command, writing, "Broken pipe")
        finally:
            os.close(writing)


if __name__ == "__main__":
    unittest.main()
