"""Chooses the files, lines and mutants of a run."""

import datetime
import pathlib
import random
import re
import subprocess
import zlib

HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")
BLAMED = re.compile(r"^([0-9a-f]{40}) \d+ (\d+)")
FOLDERS = ("base", "filter", "cache", "config", "proxy", "sim")


class Wrong(Exception):
    """The text names the argument that is wrong."""


def git(root, *arguments):
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def is_source(path):
    return path.suffix in (".cc", ".h") and path.parts[0] in FOLDERS


def sources_below(root, names):
    """Returns the files, and the sources in the folders, by their paths within the tree."""
    found = []
    for name in names:
        path = pathlib.Path(name)
        path = path if path.is_absolute() else pathlib.Path.cwd() / path
        path = path if path.exists() else root / name
        if not path.exists():
            raise Wrong(f"{name}: there is no such file or folder")
        if not path.resolve().is_relative_to(root):
            raise Wrong(f"{name}: it is not in {root}")
        inner = [path] if path.is_file() else sorted(path.rglob("*"))
        inner = [each.resolve().relative_to(root) for each in inner if each.is_file()]
        chosen = [str(each) for each in inner if is_source(each)]
        if not chosen:
            raise Wrong(f"{name}: no source in {', '.join(FOLDERS)}")
        found += chosen
    return list(dict.fromkeys(found))


def changed_lines(root, commit):
    """Returns the line numbers to mutate, by file: lines that the commit wrote and that are still there.
    Without a commit: lines that differ from main; if none do, those of the last commit."""
    if commit is None:
        lines = lines_since(root, git(root, "merge-base", "HEAD", "main").strip())
        return lines or changed_lines(root, "HEAD")
    found = {}
    if ".." in commit:
        wanted = set(git(root, "rev-list", commit).split())
        names = git(root, "diff", "--name-only", "--diff-filter=d", commit).split("\n")
    else:
        wanted = {git(root, "rev-parse", "--verify", f"{commit}^{{commit}}").strip()}
        names = git(root, "show", "--format=", "--name-only", "--diff-filter=d", commit).split("\n")
    for name in filter(None, names):
        if is_source(pathlib.Path(name)) and (root / name).is_file():
            blamed = git(root, "blame", "--porcelain", "--", name).splitlines()
            matches = filter(None, map(BLAMED.match, blamed))
            lines = {int(match[2]) for match in matches if match[1] in wanted}
            if lines:
                found[name] = lines
    return found


def lines_since(root, base):
    """Returns the lines of the work tree that a commit does not have; untracked files count in full."""
    found = {}
    name = None
    for line in git(root, "diff", "-U0", "--diff-filter=d", "--no-renames", base).splitlines():
        if line.startswith("+++ "):
            name = line[6:] if line.startswith("+++ b/") else None
        match = HUNK.match(line)
        if match and name and is_source(pathlib.Path(name)):
            first, count = int(match[1]), int(match[2] or 1)
            found.setdefault(name, set()).update(range(first, first + count))
    for name in git(root, "ls-files", "--others", "--exclude-standard").splitlines():
        if is_source(pathlib.Path(name)):
            found[name] = set(range(1, (root / name).read_text().count("\n") + 2))
    return {name: lines for name, lines in found.items() if lines}


def share_of(mutants, share, turn):
    """Returns one mutant in `share`; each turn has others, and `share` turns have them all."""
    if share == 1:
        return mutants
    return [each for each in mutants
            if zlib.crc32("\0".join(map(str, each.key)).encode()) % share == turn % share]


def today():
    return datetime.datetime.now(datetime.timezone.utc).date().toordinal()


def shuffled(mutants, seed):
    """Returns the mutants in random order, so that the first N of a folder represent all of them."""
    order = sorted(mutants, key=lambda each: each.key)
    random.Random(seed).shuffle(order)
    return order
