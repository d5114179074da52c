"""Sentences of files: of Markdown, of comments, and of the messages in the product's sources."""

import bisect
import pathlib
import re

PRODUCT = ("base/", "cache/", "config/", "filter/", "proxy/", "sim/")
HASH_SUFFIXES = {".sh", ".toml", ".cfg", ".conf", ".yml", ".cmake"}
# Data of tests, text of others, and the guide, which quotes the words that it advises against.
LEFT_OUT = ("/corpus/", "/golden/", "/data/", "/docs/STYLE.md")

END = re.compile(r"(?<=[.!?])[\"')*_]{0,3}\s+(?=[\"'(*_]{0,3}[A-Z0-9`])")
CODE = re.compile(r"`[^`]*`")
WORD = re.compile(r"[^\s*_()\[\]\"|<>`]*[^\W_][^\s*()\[\]\"|<>`]*")
NAMES = re.compile(r"\b(?:e\.g|i\.e|etc|vs|No|cf|Sec)\.$")


def words(text):
    """Words as a reader counts them: a stretch of code is one."""
    return WORD.findall(CODE.sub(" code ", text))


def may_have_prose(path):
    return not any(part in "/" + path for part in LEFT_OUT)


def kind_of(path, text):
    """markdown, c, python, hash (comments behind #), or None."""
    suffix = pathlib.PurePosixPath(path).suffix
    if suffix == ".md":
        return "markdown"
    if suffix in (".h", ".cc"):
        return "c"
    if suffix == ".py" or (not suffix and re.match(r"#!.*\bpython3?\b", text)):
        return "python"
    if suffix in HASH_SUFFIXES or path.endswith("CMakeLists.txt") or (
            not suffix and re.match(r"#!.*\b(?:ba)?sh\b", text)):
        return "hash"
    return None


class Sentence:
    """A sentence of a unit, with the lines of the file on which it stands."""

    def __init__(self, unit, begin, text, opens_comment):
        self.unit, self.begin, self.text, self.opens_comment = unit, begin, text, opens_comment
        self.line, self.last = unit.line_at(begin), unit.line_at(begin + len(text) - 1)

    def line_at(self, offset):
        return self.unit.line_at(self.begin + offset)


class Unit:
    """Text in pieces of several lines that is read as one: a paragraph, a cell, a comment."""

    def __init__(self):
        self.text, self.starts, self.lines = "", [], []

    def add(self, line, text):
        self.starts.append(len(self.text))
        self.lines.append(line)
        self.text += text.strip() + " "

    def line_at(self, offset):
        return self.lines[bisect.bisect_right(self.starts, offset) - 1]

    def sentences(self, opens_comment=False):
        first, begin = True, 0
        ends = [match for match in END.finditer(self.text)
                if not NAMES.search(self.text, max(0, match.start() - 8), match.start())]
        for stop, following in [*((m.start(), m.end()) for m in ends), (len(self.text), 0)]:
            said = self.text[begin:stop].strip()
            if re.search(r"[A-Za-z]", said):
                yield Sentence(self, begin, said, opens_comment and first)
                first = False
            begin = following


def plain(text):
    """Markdown without the addresses of its links and images."""
    text = re.sub(r"!\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"<[^>]*>", " ", text)


def markdown_units(text):
    unit, fenced, in_table, in_comment = Unit(), False, False, False
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if bare.startswith("```"):
            fenced = not fenced
            bare = ""
        elif fenced:
            continue
        if bare.startswith("<!--") or in_comment:
            in_comment = "-->" not in bare
            bare = ""
        if line.startswith("    ") and not unit.text and not re.match(r"([-*>]|\d+\.) ", bare):
            continue  # a block of code, as formulas are
        if not bare or bare.startswith(("#", "|", "- ", "* ")) or re.match(r"\d+\. ", bare):
            yield unit
            unit = Unit()
        if bare.startswith("|"):
            # The first row is the head; the second separates it.
            cells = re.split(r"(?<!\\)\|", bare.strip("|")) if in_table else []
            for cell in cells if not re.fullmatch(r"[|:\- ]+", bare) else []:
                one = Unit()
                one.add(number, plain(cell))
                yield one
            in_table = True
            continue
        in_table = False
        if bare and not bare.startswith("#"):
            unit.add(number, plain(re.sub(r"^(?:[-*>]|\d+\.) ", "", bare)))
    yield unit


C_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'", re.DOTALL)
HOLE = re.compile(r"(?:\s|\\\n)*")
ESCAPE = re.compile(r"\\(?:n|t|\"|x[0-9a-f]{2}|.)")


def line_starts(text):
    return [0, *(match.end() for match in re.finditer("\n", text))]


def comment_units(pieces):
    """Units of comments. `pieces`: (line, column, text) of each line of a comment; those that stand
    below each other in one column are one comment."""
    unit, last = Unit(), None
    for line, column, text in pieces:
        if last != (line - 1, column) or not text.strip() or text.lstrip().startswith(("- ", "* ")):
            yield unit
            unit = Unit()
        if not text.startswith("   "):  # else an example
            unit.add(line, text)
        last = (line, column)
    yield unit


def c_tokens(text):
    """(line, column, token) of each comment and string."""
    starts = line_starts(text)
    for match in C_TOKEN.finditer(text):
        line = bisect.bisect_right(starts, match.start())
        yield match, line, match.start() - starts[line - 1]


def c_units(path, text):
    """(unit, whether it is a comment)."""
    comments, strings, last_end = [], [], None
    for match, line, column in c_tokens(text):
        token = match.group()
        if token.startswith("//"):
            # NOLINT and the like are no prose.
            comments.append((line, column, re.sub(r"^NOLINT.*", "", token[2:].removeprefix("/").lstrip(" ")
                                                  if not token.startswith("//    ") else token[2:])))
        elif token.startswith('"'):
            if last_end is not None and HOLE.fullmatch(text, last_end, match.start()):
                strings[-1][1].append(token[1:-1])
            else:
                strings.append((line, [token[1:-1]]))
            last_end = match.end()
    for unit in comment_units(comments):
        yield unit, True
    if path.startswith(PRODUCT):
        for line, parts in strings:
            said = ESCAPE.sub(" ", "".join(parts))
            if re.match(r"[A-Z][A-Za-z]* \S+ \S", said):
                unit = Unit()
                unit.add(line, said)
                yield unit, False


def hash_units(text, starts_at=0):
    """Comments behind #, where that begins a line or follows two spaces."""
    pieces = []
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"(\s*|.*?\S\s\s+)#(?!!)\s?(.*)", line) if "#" in line else None
        if match and number > starts_at:
            pieces.append((number, len(match.group(1)), match.group(2)))
    return comment_units(pieces)


DOCSTRING = re.compile(r'^([ ]*)(?:(?:r|R)?""")(.*?)"""', re.DOTALL | re.MULTILINE)


def python_units(text):
    yield from hash_units(re.sub(r'"""(.*?)"""', lambda m: re.sub(r"[^\n]", " ", m.group()), text,
                                 flags=re.DOTALL))
    starts = line_starts(text)
    for match in DOCSTRING.finditer(text):
        first = bisect.bisect_right(starts, match.start())
        lines = match.group(2).split("\n")
        pieces = [(first + i, 0, line.removeprefix(match.group(1))) for i, line in enumerate(lines)]
        yield from comment_units(pieces)


def sentences(path, text):
    kind = kind_of(path, text)
    if kind == "markdown":
        units = ((unit, False) for unit in markdown_units(text))
    elif kind == "c":
        units = c_units(path, text)
    elif kind == "python":
        units = ((unit, True) for unit in python_units(text))
    else:
        units = ((unit, True) for unit in hash_units(text))
    for unit, is_comment in units:
        yield from unit.sentences(is_comment)
