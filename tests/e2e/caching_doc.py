"""Prints docs/CACHING-TESTS.md: the text before the mark there, and the rows of the tables behind it.

    python3 caching_doc.py > ../../docs/CACHING-TESTS.md
"""

import importlib
import pathlib
import re

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


def document():
    before = DOCUMENT.read_text().partition(MARK)[0]
    lines = [before + MARK, "| clause | behaviour | mode | in |", "|---|---|---|---|"]
    for clause, name, modes, module in tables():
        mode = "both" if len(modes) == 2 else modes[0]
        lines.append(f"| {clause} | {name.replace('|', chr(92) + '|')} | {mode} | {module} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(document(), end="")
