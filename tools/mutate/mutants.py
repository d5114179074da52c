"""The mutants of a source: small changes that compile and look right.

    drop      a statement left out                  f(x);              ->
    return    a return left out                     if (a) return b;   ->  if (a) {}
    reset     a reset left out                      head_ = {};        ->
    negate    a condition, or a part of it          if (a && b)        ->  if (a && !(b))
    compare   a comparison moved by one             a < b              ->  a <= b
    constant  a constant of a comparison            a == 1             ->  a == 2
    swap      two arguments of one call             f(a, b)            ->  f(b, a)
    copy      the neighbour's argument              f(a, b)            ->  f(a, a)

The compiler decides which of them have types that fit.
"""

import dataclasses
import re

from source import CONTROL, Code, Span

KINDS = ("drop", "return", "reset", "negate", "compare", "constant", "swap", "copy")
KEY_FIELDS = ("file", "function", "kind", "was", "now", "nth")
COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGICAL = ("&&", "||")
DECLARES = {"const", "constexpr", "auto", "static", "using", "typedef", "struct", "class", "enum",
            "friend", "template", "extern", "thread_local", "namespace", "public", "private",
            "protected", "goto", "asm"}
NO_CALLS = CONTROL | {"return", "operator", "new", "delete", "throw", "co_return", "co_await", "case",
                      "min", "max", "swap", "and", "or", "not"}
RESET = re.compile(r"= *(\{\}|nullptr|0|false|std::nullopt|k(None|No|Nothing))(\))? *;$"
                   r"|[.>](reset|clear)\(\);$|^(static_cast<void>\()?std::exchange\(")
DECLARATION = re.compile(r"^[A-Za-z_][\w:]*(<.*>)?[ &*]+[A-Za-z_]\w* *[=;({\[]")
NUMBER = re.compile(r"^(\d+)([uUlLzZ]*)$")


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    function: str
    kind: str
    start: int     # offset of the replaced text
    end: int
    new: str
    was: str       # its lines, their white space made one
    now: str
    pair: tuple = ()  # swap and copy: the places of their two arguments
    nth: int = 1   # among those of its file that are the same in function, kind, was and now

    @property
    def key(self):
        """Equal in every version of the file that has these lines in this function."""
        return tuple(getattr(self, name) for name in KEY_FIELDS)

    @property
    def place(self):
        return f"{self.file}:{self.line}"

    def applied(self, text):
        """The source with this mutant in it; all lines keep their numbers."""
        lost = text.count("\n", self.start, self.end) - self.new.count("\n")
        return text[:self.start] + self.new + "\n" * lost + text[self.end:]


def normal(text):
    """Without the comments' and lines' ends: one space between words."""
    return " ".join(re.sub(r"//[^\n]*", "", text).split())


class Maker:
    def __init__(self, file, text):
        self.file = file
        self.code = Code(text)
        self.found = []
        self.made = set()

    def make(self):
        self.drop_statements()
        self.change_comparisons()
        self.negate_conditions()
        self.change_arguments()
        self.found.sort(key=lambda each: (each.start, each.end, KINDS.index(each.kind), each.new))
        counts = {}
        numbered = []
        for each in self.found:
            counts[each.key] = counts.get(each.key, 0) + 1
            numbered.append(dataclasses.replace(each, nth=counts[each.key]))
        return numbered

    def add(self, kind, span, new, pair=()):
        code = self.code
        start = code.tokens[span.first].start
        end = code.tokens[span.last].end
        if not code.is_mutable(span.first) or (start, end, new) in self.made:
            return
        self.made.add((start, end, new))
        begin = code.text.rfind("\n", 0, start) + 1
        finish = code.text.find("\n", end)
        finish = len(code.text) if finish < 0 else finish
        self.found.append(Mutant(
            self.file, code.line_of(span.first), code.function_at(span.first), kind, start, end, new,
            normal(code.text[begin:finish]),
            normal(code.text[begin:start] + new + code.text[end:finish]), pair))

    # Statements

    def drop_statements(self):
        code = self.code
        for span in code.statements:
            first = code.word(span.first)
            text = normal(code.text_of(span))
            if span.first == span.last or first in DECLARES or first in ("[", "throw"):
                continue
            if code.tokens[span.first].kind not in ("word", "sign"):
                continue
            if code.word(span.last - 1) == ")" and span.last - 1 in code.skipped and any(
                    each in code.skipped for each in range(span.first, span.first + 4)):
                continue
            if first == "return":
                self.add("return", span, "{}")
            elif RESET.search(text) and not DECLARATION.match(text):
                self.add("reset", span, "{}")
            elif not DECLARATION.match(text):
                self.add("drop", span, "{}")

    # Comparisons

    def change_comparisons(self):
        code = self.code
        for index, token in enumerate(code.tokens):
            if token.kind != "sign" or token.text not in COMPARED or not code.is_spaced(index):
                continue
            if code.word(index - 1) == "operator":
                continue
            self.add("compare", Span(index, index), COMPARED[token.text])
            for at in (index + 1, index - 1):
                self.move_constant(at, token.text if at > index else "==")

    def move_constant(self, index, sign):
        """Moves a constant to the side to which the comparison's own mutant does not move it."""
        code = self.code
        number = NUMBER.match(code.word(index))
        if number is None or code.word(index + 1) in (".", "->"):
            return
        value = int(number[1]) + (-1 if sign in ("<", ">=") else 1)
        if value >= 0:
            self.add("constant", Span(index, index), f"{value}{number[2]}")

    # Conditions

    def negate_conditions(self):
        code = self.code
        for span in code.conditions:
            condition = code.split(span, (";",))[-1]
            if len(code.split(condition, ("=",))) == 1:
                self.negate_parts(condition)
        for index, token in enumerate(code.tokens):
            if token.text == "?" and token.kind == "sign":
                self.negate_parts(Span(self.operand_start(index), index - 1))
            elif token.text in LOGICAL and token.kind == "sign" and code.is_spaced(index):
                self.negate(Span(self.operand_start(index), index - 1))
                self.negate(Span(index + 1, self.operand_end(index)))

    def negate_parts(self, condition):
        for part in self.code.split(condition, LOGICAL):
            self.negate(part)

    def negate(self, span):
        code = self.code
        if span.first > span.last or len(code.split(span, ("==", "!="))) == 2:
            return  # the comparison's own mutant
        if code.word(span.first) == "!" and len(code.split(span, tuple(COMPARED))) == 1:
            self.add("negate", span, code.text_of(Span(span.first + 1, span.last)))
        else:
            self.add("negate", span, f"!({code.text_of(span)})")

    ENDS = {"(", "[", "{", "}", ")", "]", ";", ",", "?", ":", "return", "=", "&&", "||", "+=", "-=",
            "|=", "&=", "<<", "case", "else"}

    def operand_start(self, index):
        code = self.code
        at = index - 1
        while at >= 0:
            word = code.word(at)
            if word in (")", "]", "}") and at in code.partners:
                at = code.partners[at] - 1
                continue
            if word in self.ENDS:
                break
            at -= 1
        return at + 1

    def operand_end(self, index):
        code = self.code
        at = index + 1
        while at < len(code.tokens):
            word = code.word(at)
            if word in ("(", "[", "{") and at in code.partners:
                at = code.partners[at] + 1
                continue
            if word in self.ENDS:
                break
            at += 1
        return at - 1

    # Arguments

    def change_arguments(self):
        code = self.code
        for opening, token in enumerate(code.tokens):
            if token.kind != "sign" or opening not in code.partners:
                continue
            if token.text == "(":
                name = code.callee_of(opening)
                if not name or name in NO_CALLS:
                    continue
            elif token.text != "{" or code.blocks.get(opening) != "values":
                continue
            values = [self.value_of(item) for item in code.items_of(opening)]
            for left, right in zip(values, values[1:]):
                self.change_pair(left, right)

    def value_of(self, item):
        """Returns the value of an item: without the name in .name = value."""
        code = self.code
        if code.word(item.first) == "." and code.word(item.first + 2) == "=":
            return Span(item.first + 3, item.last)
        return item

    def is_value(self, span):
        code = self.code
        words = [code.word(each) for each in range(span.first, span.last + 1)]
        kinds = [code.tokens[each].kind for each in range(span.first, span.last + 1)]
        if not words or words[0] in ("[", "{", ".", "const", "constexpr", "auto", "..."):
            return False
        if "string" in kinds or words[-1] in ("&", "*", "..."):
            return False
        return not any(left == right == "word" for left, right in zip(kinds, kinds[1:]))

    def change_pair(self, left, right):
        code = self.code
        if not (self.is_value(left) and self.is_value(right)):
            return
        first, second = code.text_of(left), code.text_of(right)
        if normal(first) == normal(second):
            return
        both = Span(left.first, right.last)
        pair = tuple((code.tokens[each.first].start, code.tokens[each.last].end)
                     for each in (left, right))
        between = code.text[code.tokens[left.last].end:code.tokens[right.first].start]
        self.add("swap", both, f"{second}{between}{first}", pair)
        if "move" not in (code.word(each) for each in range(left.first, left.last + 1)):
            self.add("copy", right, first, pair)


def mutants_of(file, text):
    return Maker(file, text).make()
