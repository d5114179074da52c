"""Manual pages and completions: without a fault, and with every option of the programs."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANUALS = pathlib.Path(os.environ["ENCORE_MANUALS"])
PROGRAMS = {"encore": os.environ["ENCORE"], "encore-sim": os.environ["ENCORE_SIM"],
            "encore-filter": os.environ["ENCORE_FILTER"]}
sys.path.insert(0, str(ROOT / "packaging/manual"))
import commands
import completion
import manual

PAGES = ("encore.1", "encore-sim.1", "encore-filter.1", "encore.toml.5")
HELP = """Do a thing
Usage: tool run [OPTIONS] FILE...

Positionals:
  FILE FILE ... REQUIRED      files to read

Options:
  -h,--help                   Print this help message and exit
  -o,--output FILE REQUIRED   the file to write; a bad one is refused.
  --order TEXT=by-the-name-of-it
                              name, size (of bytes), by-the-name-of-it
  --json{-}                   write JSON

Example:
  tool run a b
The order is stable.
Exit status: 0 done,
1 not.
"""


def need(program):
    if shutil.which(program) is None:
        raise unittest.SkipTest(f"{program} is not installed")
    return program


class Pages(unittest.TestCase):
    def test_mandoc_finds_no_fault(self):
        for page in PAGES:
            said = subprocess.run([need("mandoc"), "-Tlint", MANUALS / "man" / page], check=False, timeout=60,
                                  capture_output=True, text=True)
            # Pages of ours refer to each other before they are installed.
            faults = [line for line in (said.stdout + said.stderr).splitlines()
                      if not re.search(r"referenced manual not found: Xr encore", line)]
            self.assertEqual([], faults)

    def test_each_option_of_each_command_is_in_its_page(self):
        for name, program in PROGRAMS.items():
            text = (MANUALS / "man" / f"{name}.1").read_text().replace("\\-", "-")
            count = 0
            for command in commands.read(program, [name]).walk():
                self.assertTrue(command.words == [name] or f"\n.Ss {command.name}\n" in text, command.name)
                for option in command.options:
                    self.assertRegex(text, rf"\.It .*Fl {re.escape(option.names[-1][1:])}\b", command.name)
                    count += 1
            self.assertGreater(count, 25, name)

    def test_each_key_is_in_the_page_of_the_configuration(self):
        text = (MANUALS / "man/encore.toml.5").read_text().replace("\\-", "-")
        keys = re.findall(r"^- \*\*`([a-z0-9_]+)`\*\*", (ROOT / "docs/CONFIG.md").read_text(), re.MULTILINE)
        self.assertGreater(len(keys), 200)
        self.assertEqual(sorted(keys), sorted(re.findall(r"^\.It Cm (\S+)$", text, re.MULTILINE)))


class Help(unittest.TestCase):
    """The parser of what --help prints."""

    def setUp(self):
        self.command, self.below = commands.parse(HELP.splitlines(), ["tool", "run"])

    def test_options_have_names_values_defaults_and_texts(self):
        self.assertEqual("Do a thing", self.command.text)
        _, output, order, json = self.command.options
        self.assertEqual((["-o", "--output"], "FILE", True), (output.names, output.value, output.required))
        self.assertEqual(("by-the-name-of-it", ["name", "size", "by-the-name-of-it"]), (order.default, order.choices()))
        self.assertTrue(json.optional_value)
        self.assertTrue(self.command.positionals[0].repeated)
        self.assertEqual([], self.below)

    def test_the_footer_has_parts(self):
        examples, status, others = manual.footer_parts(self.command.footer)
        self.assertEqual((["  tool run a b"], "0 done, 1 not.", ["The order is stable."]), (examples, status, others))


class Completions(unittest.TestCase):
    def complete(self, name, *words):
        """Returns the words that bash offers behind these."""
        script = (f'source "{MANUALS}/bash/{name}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); '
                  f'_{name.replace("-", "_")} 2>/dev/null; printf "%s\\n" "${{COMPREPLY[@]}}"')
        said = subprocess.run([need("bash"), "--norc", "-c", script, "bash", name, *words], check=True, timeout=60,
                              capture_output=True, text=True, cwd=ROOT)
        return set(said.stdout.split())

    def test_bash_completes_commands_options_values_and_files(self):
        self.assertEqual({"explain"}, self.complete("encore", "exp"))
        self.assertEqual({"--check-config", "--config", "--clear-disk"}, self.complete("encore", "--c"))
        self.assertLessEqual({"list", "verify", "stat"}, self.complete("encore", "disk", ""))
        self.assertEqual({"size"}, self.complete("encore", "disk", "list", "--sort", "si"))
        self.assertEqual({"README.md"}, self.complete("encore", "--config", "READ"))
        self.assertEqual({"--eviction"}, self.complete("encore-sim", "replay", "x", "--evi"))
        self.assertEqual({"murmur3", "md5"}, self.complete("encore-filter", "build", "--hash", "m"))

    def test_a_value_is_not_taken_for_a_command(self):
        self.assertEqual({"explain"}, self.complete("encore", "--config", "disk", "exp"))

    def test_fish_completes(self):
        said = subprocess.run([need("fish"), "--no-config", "-c", f"source {MANUALS}/fish/encore.fish; "
                               "complete -C 'encore disk list --sort s'; complete -C 'encore exp'"],
                              check=True, timeout=60, capture_output=True, text=True)
        self.assertEqual(["size", "explain"], [line.split("\t")[0] for line in said.stdout.splitlines()])

    def test_shells_accept_them(self):
        for name in PROGRAMS:
            for shell, path in ("bash", f"bash/{name}"), ("zsh", f"zsh/_{name}"), ("fish", f"fish/{name}.fish"):
                said = subprocess.run([need(shell), "-n", MANUALS / path], check=False, timeout=60, capture_output=True)
                self.assertEqual((0, b""), (said.returncode, said.stderr), path)

    def test_texts_of_options_are_quoted(self):
        option = commands.Option(["--it"], "FILE", "It's [one]: $x")
        self.assertEqual(["'--it[It'\\''s \\[one\\]]:FILE:_files'"], completion.zsh_spec(option))


if __name__ == "__main__":
    unittest.main()
