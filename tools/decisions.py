"""Decision records and the lines that name them: a source names a record as docs/decisions/NNNN,
and every record is named, so that a reader who asks why finds it. Called by structure.py."""

import re

FOLDER = "docs/decisions/"
# Folders, and single files, in which a record counts as named. Documents do not: readers of the
# code do not search them for reasons.
SOURCES = ("base/", "cache/", "cmake/", "config/", "filter/", "packaging/", "proxy/", "sim/", "tests/", "tools/",
           "dev", "CMakeLists.txt")

RECORD = re.compile(re.escape(FOLDER) + r"(\d{4})-[^/]+\.md$")
TITLE = re.compile(r"# (\d+)[.:]? ")
# However it is written: as here, with the rest of the file's name, without "docs/", in two words.
NAMED = re.compile(r"((?:docs/)?\bdecisions?(?:/| (?=0)))(\d+)([\w.-]*\w)?", re.IGNORECASE)


def records(texts):
    """Number -> paths of the records that have it; more than one is a fault."""
    found = {}
    for path in sorted(texts):
        match = RECORD.match(path)
        if match:
            found.setdefault(match.group(1), []).append(path)
    return found


def check_records(texts, known):
    for number, paths in known.items():
        for path in paths[1:]:
            yield path, 1, f"{paths[0]} has the number {number}, too"
        for path in paths:
            title = TITLE.match(texts[path])
            if title and title.group(1) != number:
                yield path, 1, f"its title says {title.group(1)}, its name {number}"
    for path in sorted(texts):
        if path.startswith(FOLDER) and not RECORD.match(path):
            yield path, 1, "a record is named by four digits and its subject: 0010-some-subject.md"


def check_names(path, text, known):
    is_source = path.startswith(SOURCES)
    for match in NAMED.finditer(text):
        prefix, number, rest = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if is_source and (prefix != FOLDER or rest or len(number) != 4):
            yield path, line, f"{match.group()}: a record is named as {FOLDER}NNNN"
        elif number not in known and len(number) == 4:
            yield path, line, f"{match.group()}: there is no such record"


def faults(texts):
    """(path, line, fault) of each. `texts`: path -> text of each file."""
    known = records(texts)
    yield from check_records(texts, known)
    named = set()
    for path, text in sorted(texts.items()):
        yield from check_names(path, text, known)
        if path.startswith(SOURCES):
            named.update(number for prefix, number, _ in NAMED.findall(text) if prefix == FOLDER)
    for number, paths in known.items():
        if number not in named:
            yield paths[0], 1, f"no source names it as {FOLDER}{number}"
