"""Each example of a configuration in the documents is one that encore accepts."""

import os
import pathlib
import re
import subprocess
import textwrap
import unittest

from harness import DEADLINE, Case, clean_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^( *)```toml\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def examples():
    """(place, text) of each block of TOML, those in lists of steps too."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text()
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            # A sweep is for encore-sim: test_simulation_docs.py runs it.
            if "\n[sweep]\n" in match.group(2):
                continue
            yield f"{page.relative_to(ROOT)}:{line}", textwrap.dedent(match.group(2))


class ConfigDocs(Case):
    def accepts(self, text):
        """The exit status and the faults that encore finds in a configuration."""
        file = self.directory / "example.toml"
        file.write_text(text)
        ended = subprocess.run([os.environ["ENCORE"], "--config", file, "--dump-config"],
                               capture_output=True, text=True, env=clean_environment(),
                               timeout=DEADLINE, check=False)
        return ended.returncode, ended.stderr

    def test_every_example_is_accepted(self):
        found = list(examples())
        self.assertGreater(len(found), 20)
        for place, text in found:
            with self.subTest(place):
                self.assertEqual((0, ""), self.accepts(text))

    def test_an_example_with_an_unknown_key_would_not_be(self):
        _, text = next(examples())
        status, faults = self.accepts(text + "\n[no_such_section]\n")
        self.assertEqual(2, status)
        self.assertIn("no_such_section", faults)


if __name__ == "__main__":
    unittest.main()
