"""A build's programs, each of which can be linked anew with a mutant in it.

A mutant costs one compilation of its source, as the build compiles it, and one link of each program that
is run. Sources, archives and programs are those of the moment at which the run began: a snapshot under
BUILD/../mutate, so that edits and builds meanwhile do not affect it, nor it them.
"""

import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import subprocess

SOURCE_SUFFIXES = {".cc", ".h"}
CC_SECONDS_MAX = 300


class NotBuilt(Exception):
    """The text says what is missing."""


@dataclasses.dataclass(frozen=True)
class Test:
    name: str          # as CTest has it
    command: tuple     # its program first
    directory: str
    environment: dict
    labels: tuple


def output_of(*command, cwd=None):
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def place(source, target):
    """A file at another place: the same one where the file system can, for builds replace files."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


class World:
    def __init__(self, root, build, folder):
        self.root = root
        self.build = build
        self.folder = folder
        self.tree = folder / "tree"
        self.linked = folder / "build"
        commands = json.loads((build / "compile_commands.json").read_text())
        self.compile = {}
        for each in commands:
            source = pathlib.Path(each["file"])
            if source.is_relative_to(root):
                self.compile[str(source.relative_to(root))] = shlex.split(each["command"])
        self.tests = self._read_tests()
        self.links = {}       # program -> words of the command that links it
        self.symbols = {}     # program or object -> names that it defines
        self.included = None  # header -> objects
        self.linker = ["-fuse-ld=lld"] if shutil.which("ld.lld") else []

    def _read_tests(self):
        listed = json.loads(output_of("ctest", "--test-dir", str(self.build), "--show-only=json-v1"))
        tests = []
        for each in listed["tests"]:
            values = {entry["name"]: entry["value"] for entry in each.get("properties", [])}
            environment = dict(entry.split("=", 1) for entry in values.get("ENVIRONMENT", []))
            tests.append(Test(each["name"], tuple(each.get("command", ())),
                              values.get("WORKING_DIRECTORY", str(self.build)), environment,
                              tuple(values.get("LABELS", ()))))
        return tests

    def program_of(self, test):
        """The path within the build of what a unit test runs, or None: a script."""
        path = pathlib.Path(test.command[0]) if test.command else None
        if path is None or not path.is_relative_to(self.build):
            return None
        return str(path.relative_to(self.build))

    # The snapshot

    def take_snapshot(self, programs, objects=()):
        names = output_of("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
                          cwd=self.root).split("\0")
        for name in sorted(set(filter(None, names))):
            source = self.root / name
            if source.is_symlink() or source.is_file():
                target = self.tree / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        needed = {*programs, *objects}.union(*map(self.link_of, programs))
        for word in sorted(needed):
            if not word.startswith(("-", "/")) and (self.build / word).is_file():
                place(self.build / word, self.linked / word)

    # Programs and their sources

    def link_of(self, program):
        if program not in self.links:
            if not (self.build / program).is_file():
                raise NotBuilt(f"{self.build / program} is not built")
            line = output_of("ninja", "-C", str(self.build), "-t", "commands", "-s", program)
            words = shlex.split(line.strip().splitlines()[-1])
            if words[0] == ":":
                words = words[2:words.index("&&", 2)]
            self.links[program] = words
        return self.links[program]

    def object_of(self, source):
        words = self.compile[source]
        return words[words.index("-o") + 1]

    def sources_with(self, file):
        """The sources that have to be compiled where a file changes."""
        if file.endswith(".cc"):
            return [file] if file in self.compile else []
        if self.included is None:
            self.included = self._read_includes()
        return self.included.get(file, [])

    def _read_includes(self):
        sources = {self.object_of(source): source for source in self.compile}
        included = {}
        source = None
        for line in output_of("ninja", "-C", str(self.build), "-t", "deps").splitlines():
            if line and not line.startswith(" "):
                source = sources.get(line.split(":")[0])
            elif source and line.startswith(f"    {self.root}/"):
                included.setdefault(line[5 + len(str(self.root)):], []).append(source)
        return included

    def defined_in(self, path, wanted="TDBR"):
        """Names with code or data in a program or object, of the kinds of nm that are wanted: others are what
        any object may have."""
        if path not in self.symbols:
            lines = output_of("nm", "--defined-only", str(self.build / path)).splitlines()
            kinds = (line.split(" ", 2) for line in lines)
            self.symbols[path] = {each[2] for each in kinds if len(each) == 3 and each[1] in wanted}
        return self.symbols[path]

    def has_object(self, program, source):
        """True if a program contains the code of a source, rather than only links its library."""
        object_ = self.object_of(source)
        if object_ in self.link_of(program):
            return True
        # The linker makes a name local if one object of the program says that it is hidden.
        return (self.build / object_).is_file() and bool(
            self.defined_in(object_) & self.defined_in(program, "TDBRtdbr"))

    # Mutants

    def compile_command(self, source, overlay, made):
        """As the build's, but from the snapshot, a mutant's files before it; the names in messages and
        checks are those of the tree."""
        words = list(self.compile[source])
        include = f"-I{self.root}"
        at = words.index(include)
        words[at:at + 1] = [f"-I{overlay}", f"-I{self.tree}",
                            f"-fmacro-prefix-map={overlay}={self.root}",
                            f"-fmacro-prefix-map={self.tree}={self.root}"]
        words[words.index("-o") + 1] = str(made)
        file = overlay / source
        words[words.index("-c") + 1] = str(file if file.exists() else self.tree / source)
        return words

    def link_command(self, program, made, objects):
        """`objects`: the build's object -> the one that takes its place. Before the archives, for of two
        that define a name the linker takes the first."""
        words = list(self.link_of(program))
        words[words.index("-o") + 1] = str(made)
        before = []
        for old, new in objects.items():
            if old in words:
                words[words.index(old)] = str(new)
            else:
                before.append(str(new))
        at = words.index("-o") + 2
        return [*words[:at], *before, *words[at:], *self.linker]


def without_debugging(object_):
    """An object's bytes but for line tables: equal where the compiler made the same of two sources."""
    bare = object_.with_suffix(".bare")
    subprocess.run(["strip", "--strip-debug", "-o", bare, object_], check=True, capture_output=True)
    data = bare.read_bytes()
    bare.unlink()
    return data
