"""Medians, ratios and doubts of the table of reads."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from test_claim import load
from written import file_system


def cached_pages(file):
    said = subprocess.run(["fincore", "--raw", "--noheadings", "--output", "PAGES", file],
                          check=True, capture_output=True, text=True).stdout
    return int(said)


class DiskReads(unittest.TestCase):
    def setUp(self):
        self.reads = load("disk_reads")

    def rounds(self, *figures, from_disk=1.0, error=""):
        return [self.reads.Round(figure, from_disk, 0.5, 700, 900, error) for figure in figures]

    def test_ratios_of_medians_are_to_the_first_that_could_be_measured(self):
        lines = self.reads.table({"a": "missing", "b": self.rounds(0.5, 0.1, 0.2),
                                  "c": self.rounds(0.3)}).splitlines()
        self.assertEqual(["| a | missing | | | | | | | |",
                          "| b | 0.200 | 0.500 0.100 0.200 | 1.00 | 1.00 | 0.50 | 700 | 900 |  |",
                          "| c | 0.300 | 0.300 | 1.50 | 1.00 | 0.50 | 700 | 900 |  |"], lines[2:])

    def test_a_round_out_of_memory_and_errors_are_said(self):
        self.assertEqual([], self.reads.faults(self.rounds(0.1, from_disk=0.75)))
        self.assertEqual(["2 of 9 failed", "only 74% came from disk"], self.reads.faults(
            self.rounds(0.1, 0.2) + self.rounds(0.1, from_disk=0.74, error="2 of 9 failed")))

    @unittest.skipUnless(shutil.which("fincore"), "fincore is not installed")
    def test_the_page_cache_is_emptied_of_all_files(self):
        with tempfile.TemporaryDirectory(prefix="encore-reads-", dir="/var/tmp") as directory:
            if file_system(directory)[0] in ("tmpfs", "ramfs", "overlay"):
                self.skipTest("/var/tmp has no pages to lose")
            files = [pathlib.Path(directory) / name for name in ("one", "a/two")]
            files[1].parent.mkdir()
            for file in files:
                file.write_bytes(bytes(4096))
            self.assertEqual([1, 1], [cached_pages(file) for file in files])
            self.reads.Emptier(directory).finish()
            self.assertEqual([0, 0], [cached_pages(file) for file in files])


if __name__ == "__main__":
    unittest.main()
