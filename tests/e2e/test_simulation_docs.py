"""The examples of the documents, and those of every --help, print what they are said to print.

In each ```console block of docs/SIMULATION.md, docs/FILTER-THEORY.md, docs/TUNE.md, README.md and
the transcripts (the complete output where pages shorten it), the lines after "$ " are run, in their
order and in one directory. The lines after them must equal standard output, to the byte except blank
lines at the end. A line "..." stands for any lines. A command must exit with 0 unless "$ echo $?"
says otherwise. Parts that vary:

- 127.0.0.1:3128, the proxy's address, is replaced by one with a free port.
- `drive` and `verify`: their figures depend on the port of the origin, which is part of the keys, and
  on which request comes first. There every number but a plain 0 stands for any such number, a path for
  any path, what the proxy and the simulator said of a request for anything, blanks for any blanks; the
  outcomes "admitted" and "collapsed" may be missing or not.
- A line that ends in ^C: Ctrl-C is pressed, at a terminal, when the progress shows that much or more.
  What was done by then depends on the machine: numbers and blanks as above, and "-" is a number too.
"""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from documents import Example, blocks_of, examples_of, pattern_of
from harness import (DEADLINE, Case, clean_environment, eventually, free_port, listening, sanitized,
                     stop_process)
from terminal import Terminal

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(__file__).parent / "data"
TRANSCRIPTS = pathlib.Path(__file__).parent / "transcripts"
PROXY = "127.0.0.1:3128"
VARIES = re.compile(r"encore-sim (drive|verify)\b")


# The order in which the examples of --help are run: what one needs, another has made.
HELP_ORDER = ("generate", "blocks", "theory", "stats", "convert", "replay", "policies", "sweep", "compare",
              "tune", "drive", "verify")


def files_of(document):
    """{name: text} of the blocks that begin with "# NAME.toml"."""
    named = re.compile(r"# (\S+\.toml)\n")
    return {named.match(text).group(1): text for _, text in blocks_of(document, "toml")
            if named.match(text)}


def without_what_varies(text):
    """The text, where a number that is not plainly 0 is N, a path P, and an outcome W."""
    lines = []
    for line in text.splitlines():
        line = re.sub(r"/o/[0-9a-f/]+", "P", line)
        line = re.sub(r"(the proxy said|the simulator) [a-z-]+", r"\1 W", line)
        line = re.sub(r"(?<![\w.-])-?([0-9]+\.[0-9]+|[1-9][0-9]*)([KMG]iB|e-[0-9]+)?\b", "N", line)
        if not line.startswith(("admitted ", "collapsed ")):
            lines.append(" ".join(line.split()))
    return "\n".join(lines) + "\n"


class Examples(Case):
    def setUp(self):
        super().setUp()
        for variable in ("ENCORE", "ENCORE_SIM"):
            if not os.environ.get(variable):
                self.skipTest(f"{variable} does not name the program")
        if sanitized():
            self.skipTest("what is printed is the same in every build, and takes minutes here")
        programs = self.directory / "programs"
        programs.mkdir()
        released = os.environ.get("ENCORE_RELEASE")
        for name, variable in (("encore", "ENCORE"), ("encore-sim", "ENCORE_SIM")):
            (programs / name).symlink_to(f"{released}/{name}" if released else os.environ[variable])
        self.work = self.directory / "work"
        self.work.mkdir()
        for trace in DATA.glob("*.xz"):
            (self.work / trace.name).symlink_to(trace)
        self.environment = clean_environment(
            PATH=f"{programs}:{os.environ['PATH']}", TMPDIR=self.directory)
        self.port, self.proxy = free_port(), None

    def start_proxy(self, command):
        self.stop_proxy()
        admin = free_port()
        self.proxy = self.start(
            [*command.rstrip(" &").split(), "--set", "listen.0.mode=forward",
             "--set", f"listen.0.address=127.0.0.1:{self.port}",
             "--set", f"admin.address=127.0.0.1:{admin}"],
            port=self.port, cwd=self.work, env=self.environment)
        eventually(lambda: listening(admin), "the proxy is ready")

    def stop_proxy(self):
        if self.proxy:
            stop_process(self.proxy)
            self.assertEqual(0, self.proxy.returncode)

    def shell(self, command):
        return subprocess.run(["bash", "-c", command], cwd=self.work,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=self.environment, timeout=10 * DEADLINE)

    def interrupted(self, example):
        terminal = Terminal(self, example.command, cwd=self.work, env=self.environment)
        bar = re.fullmatch(r"(.+)  \[[# ]*\] +(\d+) %  ETA \S+", example.interrupt)
        if bar:
            terminal.wait_for_percent(bar.group(1), int(bar.group(2)))
        else:
            terminal.wait_until_shown(re.escape(example.interrupt))
        terminal.press_control_c()
        status, output = terminal.end()
        # A shell of which the interrupt killed another part of the pipeline.
        return 128 - status if status < 0 else status, output, terminal.shown

    def run_example(self, example):
        if example.command.endswith("&"):
            self.start_proxy(example.command)
            return
        if example.command == "kill %1":
            self.stop_proxy()
            return
        if example.interrupt:
            status, output, errors = self.interrupted(example)
        else:
            ended = self.shell(example.command.replace(PROXY, f"127.0.0.1:{self.port}"))
            status, output, errors = ended.returncode, ended.stdout, ended.stderr
        self.assertEqual(example.status, status, output + errors)
        if example.place == "--help":
            return
        documented, printed = (text.rstrip("\n") + "\n" for text in (example.printed, output))
        if VARIES.match(example.command) or example.interrupt:
            documented, printed = map(without_what_varies, (documented, printed))
        if example.interrupt:
            documented, printed = (re.sub("(?<= )-(?= |$)", "N", text, flags=re.M)
                                   for text in (documented, printed))
        if not pattern_of(documented).fullmatch(printed):
            self.assertEqual(documented, printed)

    def run_document(self, document):
        for name, text in files_of(document).items():
            (self.work / name).write_text(text)
        examples = examples_of(document)
        for example in examples:
            with self.subTest(example.command, place=example.place):
                self.run_example(example)
        return len(examples)

    def helps(self, *command):
        """(command, example) of each --help, from this command downwards."""
        text = self.shell(" ".join(["encore-sim", *command, "--help"])).stdout
        behind = re.search(r"^Example:\n((?:  .*\n)+)", text, re.M)
        self.assertIsNotNone(behind, f"{command} has no example")
        found = [(command, line.strip()) for line in behind.group(1).splitlines()]
        below = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
        for name in re.findall(r"^  (\S+)", below.group(1), re.M) if below else []:
            found += self.helps(*command, name)
        return found

    def test_those_of_every_help(self):
        found = self.helps()
        self.assertEqual({*HELP_ORDER}, {command[0] for command, _ in found if command})
        for name, text in files_of(ROOT / "docs" / "SIMULATION.md").items():
            (self.work / name).write_text(text)
        with gzip.open(self.work / "access.log.gz", "wt") as log:
            log.writelines(f'127.0.0.1 - - [01/Aug/1995:00:00:{n:02} -0400] "GET /{n % 7} HTTP/1.0" '
                           f'200 {n}\n' for n in range(60))
        self.start_proxy("encore --config encore.toml")
        for command, line in sorted(
                found, key=lambda entry: (HELP_ORDER.index(entry[0][0]) if entry[0] else -1)):
            with self.subTest(line):
                self.assertTrue(line.startswith(" ".join(["encore-sim", *command])), command)
                if command == ("verify",):
                    self.stop_proxy()
                self.run_example(Example(line, "--help"))

    def test_those_of_the_simulation(self):
        self.assertGreater(self.run_document(ROOT / "docs" / "SIMULATION.md"), 10)

    def test_the_transcript_of_the_simulation(self):
        self.assertGreater(self.run_document(TRANSCRIPTS / "encore-sim.md"), 20)

    def test_those_of_the_theory(self):
        self.assertGreater(self.run_document(ROOT / "docs" / "FILTER-THEORY.md"), 7)

    def test_the_transcript_of_the_theory(self):
        self.assertGreater(self.run_document(TRANSCRIPTS / "theory.md"), 15)

    def test_those_of_the_how_to(self):
        self.assertGreater(self.run_document(ROOT / "docs" / "TUNE.md"), 1)

    def test_those_of_the_readme(self):
        examples = examples_of(ROOT / "README.md")
        self.assertEqual([e.command for e in examples],
                         [e.command for e in examples if e.command.startswith("encore-sim ")])
        self.run_document(ROOT / "README.md")

    def test_no_other_block_of_the_documents_has_a_command_of_encore_sim(self):
        """Commands that are run must be in a ```console block."""
        for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
            shown = sum(text.count("$ encore-sim") for _, text in blocks_of(document, "console"))
            self.assertEqual(shown, document.read_text().count("$ encore-sim"), document)


if __name__ == "__main__":
    unittest.main()
