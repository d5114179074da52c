"""Prints docs/CACHING-TESTS.md: the text before the mark there, and a line for each clause with tests
of caching.

    python3 caching_doc.py > ../../docs/CACHING-TESTS.md
    python3 caching_doc.py --rows [CLAUSE]     each tested behaviour, with its clause
"""

import collections
import importlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
DOCUMENT = HERE.parent.parent / "docs" / "CACHING-TESTS.md"
MARK = "<!-- Below: written by tests/e2e/caching_doc.py. -->\n"


def natural(clause):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", clause)]


def tables():
    """(clause, row's name, modes, module), by clause."""
    found = []
    for path in sorted(HERE.glob("test_caching_*.py")):
        module = importlib.import_module(path.stem)
        for row in getattr(getattr(module, "row", None), "rows", []):
            found.append((row.clause, row.name, row.modes, path.stem))
    return sorted(found, key=lambda row: natural(row[0]))


def number_of(modes):
    """The behaviours of a clause in a module: "4", or "4 forward, 6 reverse" if they differ."""
    forward, reverse = modes["forward"], modes["reverse"]
    return f"{forward}" if forward == reverse else f"{forward} forward and {reverse} reverse"


def document():
    before = DOCUMENT.read_text().partition(MARK)[0]
    numbers = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for clause, _, modes, module in tables():
        numbers[clause][module.removeprefix("test_caching_")].update(modes)
    lines, rfc = [], None
    for clause, each in numbers.items():
        word, number, *section = clause.split() + [""]
        if word == "RFC" and number != rfc:
            rfc = number
            lines += ["", f"## RFC {rfc}", ""]
        name = (section[0] or "whole") if rfc else word
        lines.append(f"- {name}: " + ", ".join(f"{module} {number_of(modes)}" for module, modes in each.items()))
    return before + MARK + "\n" + "\n".join(lines) + "\n"


def main():
    if sys.argv[1:2] == ["--rows"]:
        for clause, name, modes, module in tables():
            if clause.startswith(tuple(sys.argv[2:]) or ""):
                print(f"{clause}\t{name}\t{', '.join(modes)}\t{module}")
    else:
        print(document(), end="")


if __name__ == "__main__":
    main()
