#!/usr/bin/env python3
"""Plants one fault of faults.toml after the other into the proxy and tells how many seeds and
requests the simulation took to find it.

    tests/simulate/faults/run.py BUILD [--only NAME,...] [--requests N] [--round N] [--seed N]

BUILD is a folder in which encore_simulate was built. A fault is planted into a copy of its source
file, which is compiled as BUILD compiles it and linked before the libraries: nothing else is built,
and nothing in the tree changes. Without --requests and --round, a fault with `within` and `round` is
looked for in so many requests, in rounds of that size. Ends with 0 where all were found.
"""

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
# Without numbers of the fault's own.
REQUESTS = 200000
ROUND = 2000


def sources():
    return [path for folder in ("proxy", "cache", "base") for path in (ROOT / folder).rglob("*.cc")]


def place(name, text, files):
    """The one source that holds a fault's text: files move, and faults move with them."""
    found = [path for path in files if text in path.read_text()]
    if len(found) != 1:
        names = ", ".join(str(path.relative_to(ROOT)) for path in found) or "no file"
        sys.exit(f"{name}: its text is in {names}")
    if found[0].read_text().count(text) != 1:
        sys.exit(f"{name}: its text is more than once in {found[0]}")
    return found[0]


def edits_of(fault, files):
    """Source -> its text with the fault in it."""
    changed = {}
    for edit in [fault, *fault.get("and", [])]:
        source = place(fault["name"], edit["old"], files)
        text = changed.get(source) or source.read_text()
        changed[source] = text.replace(edit["old"], edit["new"])
    return changed


class Builder:
    def __init__(self, build, folder):
        self.build = build
        self.folder = folder
        commands = json.loads((build / "compile_commands.json").read_text())
        self.compile = {pathlib.Path(each["file"]).resolve(): each["command"] for each in commands}
        ninja = subprocess.run(["ninja", "-C", build, "-t", "commands", "encore_simulate"],
                               check=True, capture_output=True, text=True).stdout
        self.link = ninja.strip().splitlines()[-1]

    def run(self, command):
        done = subprocess.run(command, shell=True, cwd=self.build, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{command}\n{done.stdout}{done.stderr}")

    def compile_copy(self, name, source, text):
        copy = self.folder / f"{name}-{source.name}"
        copy.write_text(text)
        made = copy.with_suffix(".o")
        words = [word for word in shlex.split(self.compile[source]) if word != "-Werror"]
        words[words.index("-o") + 1] = str(made)
        words[words.index("-c") + 1] = str(copy)
        self.run(shlex.join(words))
        return str(made)

    def make(self, name, edits):
        """A program with the fault in it."""
        objects = [self.compile_copy(name, source, text) for source, text in edits.items()]
        program = self.folder / name
        link = re.sub(r"-o encore_simulate\b",
                      f"-o {shlex.quote(str(program))} {shlex.join(objects)}", self.link)
        self.run(link)
        return program


def look(program, fault, arguments):
    """(found, kind, rounds, requests, seconds)"""
    most = arguments.requests or fault.get("within", REQUESTS)
    size = arguments.round or fault.get("round", ROUND)
    started = time.monotonic()
    done = subprocess.run(
        [program, "--seed", str(arguments.seed), "--requests", str(most), "--round", str(size),
         "--shorten", "0"], capture_output=True, text=True, errors="replace")
    seconds = time.monotonic() - started
    found = re.search(r"=== FINDING (\S+), in round (\d+), after (\d+) requests", done.stdout)
    if found is None:
        return False, "", 0, 0, seconds
    return True, found[1], int(found[2]), int(found[3]), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--requests", type=int)
    parser.add_argument("--round", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    faults = tomllib.loads((HERE / "faults.toml").read_text())["fault"]
    if arguments.only:
        faults = [each for each in faults if each["name"] in arguments.only.split(",")]
    files = sources()
    planted = [edits_of(fault, files) for fault in faults]
    missed = 0
    print(f"{'fault':<32} {'found as':<16} {'seeds':>6} {'requests':>9} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(arguments.build.resolve(), pathlib.Path(folder))
        for fault, edits in zip(faults, planted):
            found, kind, rounds, requests, seconds = look(builder.make(fault["name"], edits),
                                                          fault, arguments)
            missed += not found
            row = f"{kind:<16} {rounds:>6} {requests:>9}" if found else f"{'NOT FOUND':<33}"
            print(f"{fault['name']:<32} {row} {seconds:>8.1f}", flush=True)
    print(f"{len(faults) - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
