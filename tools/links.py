#!/usr/bin/env python3
"""Checks links: each relative link of a Markdown page leads to a file of the tree, and its anchor to
a heading there; each page of docs/ that another file names exists, and so does each source that
ARCHITECTURE.md names.

    tools/links.py [ROOT]     a line for each dead link; exit status 1 if there is any
"""

import pathlib
import re
import sys

import structure

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"\bdocs/[\w/.-]+\.md\b")
# Sources, named by the end of their paths or by its begin.
PLACES, PLACE = "## Places in the source\n", re.compile(r"`([a-z0-9_/.]+)\*?`")
# Names of pages that only a test's tree has.
PLANTED = ("tests/tools/",)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def anchor_of(title):
    """The anchor of a heading, as GitHub makes it for the first one of this title."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def anchors_of(text):
    """Anchors of a page's headings, as GitHub makes them."""
    found, seen = set(), {}
    for title in re.findall(r"^#+ +(.+?) *$", FENCE.sub(blank, text), re.MULTILINE):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        anchor = anchor_of(title)
        number = seen.get(anchor, 0)
        seen[anchor] = number + 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def resolve(path, target):
    """The path from the root that a link of a page means; None: outside of the tree."""
    parts = []
    for part in [*pathlib.PurePosixPath(path).parent.parts, *target.split("/")]:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def check_page(path, text, pages, paths):
    """(line, fault) of each. `pages`: path -> text of each page; `paths`: all files and folders."""
    bare = re.sub(r"`[^`\n]*`", blank, FENCE.sub(blank, text))
    for match in LINK.finditer(bare):
        target, _, anchor = match.group(1).partition("#")
        if ":" in target.split("/")[0]:
            continue
        line = bare.count("\n", 0, match.start()) + 1
        page = resolve(path, target) if target else path
        if page not in paths:
            yield line, f"{target}: there is no such file"
        elif anchor and (page not in pages or anchor not in anchors_of(pages[page])):
            yield line, f"{target}#{anchor}: there is no such heading"


def check_places(text, names):
    """(line, fault) of each source that is not there."""
    begin = text.find(PLACES)
    for match in PLACE.finditer(text, begin) if begin >= 0 else ():
        if not any(f"/{match.group(1)}" in f"/{name}" for name in names):
            yield text.count("\n", 0, match.start()) + 1, f"{match.group(1)}: there is no such source"


def faults(texts, names):
    """(path, line, fault) of each. `texts`: path -> text of each file; `names`: every file."""
    pages = {path: text for path, text in texts.items() if path.endswith(".md")}
    paths = {"", *names}
    for name in names:
        paths.update(str(each) for each in pathlib.PurePosixPath(name).parents)
    for path, text in sorted(texts.items()):
        if path in pages:
            for line, fault in check_page(path, text, pages, paths):
                yield path, line, fault
            for line, fault in check_places(text, names):
                yield path, line, fault
        elif not path.startswith(PLANTED):
            for match in NAMED.finditer(text):
                if match.group() not in paths and not match.group().startswith("docs/decisions/"):
                    yield (path, text.count("\n", 0, match.start()) + 1,
                           f"{match.group()}: there is no such page")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    names = [name for name in structure.tracked_files(root) if (root / name).is_file()]
    texts = {}
    for name in names:
        try:
            texts[name] = (root / name).read_bytes().decode()
        except UnicodeDecodeError:
            continue
    found = list(faults(texts, names))
    for path, line, fault in found:
        print(f"{path}:{line}: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
