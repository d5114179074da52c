"""The examples of docs/ENCORE-FILTER.md, of its transcript, and of every --help print what they are
said to print.

Each ```console block is run as documents.py says, in its order and in one directory, and what follows
a command must be what is on its standard output, to the byte but for blank lines at the end.
"""

import pathlib
import re
import subprocess
import unittest

from documents import blocks_of, examples_of, pattern_of
from encore_filter import EncoreFilter
from harness import DEADLINE, Case, clean_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "ENCORE-FILTER.md"
TRANSCRIPT = pathlib.Path(__file__).parent / "transcripts" / "encore-filter.md"
COMMANDS = {"build", "add", "remove", "test", "info", "union", "intersect", "convert", "fetch", "sizing",
            "join", "hashes"}


class Examples(Case):
    def setUp(self):
        super().setUp()
        programs = self.directory / "programs"
        programs.mkdir()
        (programs / "encore-filter").symlink_to(EncoreFilter(self).program)
        self.work = self.directory / "work"
        self.work.mkdir()
        environment = clean_environment()
        self.environment = {**environment, "PATH": f"{programs}:{environment['PATH']}"}

    def shell(self, command):
        return subprocess.run(["bash", "-c", command], cwd=self.work, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env=self.environment,
                              timeout=DEADLINE, check=False)

    def run_document(self, document):
        examples = examples_of(document)
        for example in examples:
            with self.subTest(example.command, place=example.place):
                ended = self.shell(example.command)
                self.assertEqual(example.status, ended.returncode, ended.stdout + ended.stderr)
                documented, printed = (text.rstrip("\n") + "\n"
                                       for text in (example.printed, ended.stdout))
                if not pattern_of(documented).fullmatch(printed):
                    self.assertEqual(documented, printed)

        return len(examples)

    def test_those_of_the_document(self):
        self.assertGreater(self.run_document(DOCUMENT), 40)

    def test_those_of_the_transcript(self):
        self.assertGreater(self.run_document(TRANSCRIPT), 8)

    def helps(self, *command):
        text = self.shell(" ".join(["encore-filter", *command, "--help"])).stdout
        behind = re.search(r"^Example:\n((?:  .*\n)+)", text, re.M)
        self.assertIsNotNone(behind, f"{command} has no example")
        return text, [line.strip() for line in behind.group(1).splitlines()]

    def test_those_of_every_help(self):
        text, _ = self.helps()
        below = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M).group(1)
        commands = re.findall(r"^  (\S+)", below, re.M)
        self.assertEqual(COMMANDS, set(commands))
        for command in commands:
            for line in self.helps(command)[1]:
                with self.subTest(line):
                    self.assertIn("encore-filter ", line)
                    # Its source is not there: test_encore_filter.py has servers.
                    ended = self.shell(line)
                    self.assertEqual(2 if command == "fetch" else 0, ended.returncode,
                                     ended.stderr)

    def test_what_is_shown_with_a_prompt_is_run(self):
        shown = sum(text.count("$ encore-filter") for _, text in blocks_of(DOCUMENT, "console"))
        for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
            expected = shown if document == DOCUMENT else 0
            self.assertEqual(expected, document.read_text().count("$ encore-filter"), document)


if __name__ == "__main__":
    unittest.main()
