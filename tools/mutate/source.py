"""Finds blocks, functions, statements and conditions in C++ tokens, as far as mutations need them.

This is not a parser. It relies on clang-format, whose spaces distinguish an operator from a template's
bracket. A mistake results in a mutant that does not compile.
"""

import bisect
import dataclasses

from tokens import partners_of, tokens_of

TYPE_WORDS = {"class", "struct", "union", "enum", "namespace", "extern"}
BEFORE_CODE = {"else", "do", "try", "noexcept", "override", "mutable"}
CONTROL = {"if", "while", "for", "switch", "catch"}
CHECKS = {"static_assert", "assert", "alignas", "decltype", "sizeof", "noexcept", "requires"}
LOGGING = {"debug", "warn", "warning"}  # without a namespace in front of them
LOGS = {"log", "spdlog"}


@dataclasses.dataclass(frozen=True)
class Span:
    """Tokens first to last, both included."""
    first: int
    last: int


class Code:
    """One source: its tokens, and which of them are code that runs."""

    def __init__(self, text):
        self.text = text
        self.tokens = tokens_of(text)
        self.partners = partners_of(self.tokens)
        self.line_starts = [0] + [at + 1 for at, letter in enumerate(text) if letter == "\n"]
        self.blocks = {}      # index of { -> code, type or values
        self.functions = []   # (Span with its list of initialisers, name), in order
        self.statements = []  # Span of each simple statement, its ; included
        self.conditions = []  # Span of each condition of if and while
        self._classify()
        for first, kind in self.blocks.items():
            if kind == "code":
                self._read_block(first + 1, self.partners[first])
        self.skipped = self._find_skipped()

    def word(self, index):
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def line_of(self, token):
        return bisect.bisect_right(self.line_starts, self.tokens[token].start)

    def text_of(self, span):
        return self.text[self.tokens[span.first].start:self.tokens[span.last].end]

    def is_spaced(self, index):
        """True if a sign has white space on both sides, as binary operators have."""
        token = self.tokens[index]
        return (self.text[token.start - 1:token.start].isspace()
                and self.text[token.end:token.end + 1].isspace())

    def function_at(self, index):
        """The name of the function that a token is in, or None."""
        at = bisect.bisect_right(self.functions, index, key=lambda each: each[0].first) - 1
        if at >= 0 and index <= self.functions[at][0].last:
            return self.functions[at][1]
        return None

    def is_mutable(self, index):
        return self.function_at(index) is not None and index not in self.skipped

    def items_of(self, opening):
        """The Spans between the commas of a bracket."""
        items = []
        first = opening + 1
        angles = 0
        index = first
        end = self.partners[opening]
        while index < end:
            word = self.word(index)
            if word in ("(", "[", "{") and index in self.partners:
                index = self.partners[index]
            elif word == "<" and not self.is_spaced(index):
                angles += 1
            elif word in (">", ">>") and not self.is_spaced(index):
                angles = max(0, angles - len(word))
            elif word == "," and angles == 0:
                items.append(Span(first, index - 1))
                first = index + 1
            index += 1
        if first < end:
            items.append(Span(first, end - 1))
        return items

    def split(self, span, words):
        """A Span cut at the signs of `words` that stand in no bracket within it."""
        parts = []
        first = index = span.first
        while index <= span.last:
            if self.word(index) in ("(", "[", "{") and index in self.partners:
                index = self.partners[index]
            elif self.word(index) in words and (self.is_spaced(index) or self.word(index) == ";"):
                parts.append(Span(first, index - 1))
                first = index + 1
            index += 1
        parts.append(Span(first, span.last))
        return [part for part in parts if part.first <= part.last]

    # Blocks

    def _declaration_start(self, index):
        """The first token of the declaration that the token at index ends or continues."""
        while index > 0:
            word = self.word(index - 1)
            if word in (")", "]") and index - 1 in self.partners:
                index = self.partners[index - 1]
                continue
            if word == "}" and index - 1 in self.partners:
                opening = self.partners[index - 1]
                if self.blocks.get(opening) != "values":
                    return index
                index = opening
                continue
            if word in (";", "{", "}"):
                return index
            index -= 1
        return 0

    def _has_trailing_return(self, index):
        for at in range(index - 1, max(0, index - 40), -1):
            word = self.word(at)
            if word == "->":
                return self.word(at - 1) in (")", "const", "noexcept", "mutable")
            if word in (";", "{", "}", "=", "return"):
                return False
        return False

    def _block_kind(self, index, parent):
        before = self.word(index - 1)
        if before == ")" or before in BEFORE_CODE:
            return "code"
        if before == "]":
            opening = self.partners.get(index - 1, 0)
            kind = self.tokens[opening - 1].kind if opening else "sign"
            return "values" if kind == "word" or self.word(opening - 1) in (")", "]") else "code"
        if before in ("", ";", "{", "}", ":"):
            if before == "}" and parent != "values":
                return "code"
            return "code" if parent == "code" else "values"
        if before == "const" and self.word(index - 2) == ")":
            return "code"
        if self._has_trailing_return(index):
            return "code"
        start = self._declaration_start(index)
        depth = 0
        for at in range(start, index):
            depth += self.word(at) in ("(", "<")
            depth -= self.word(at) in (")", ">")
            if depth == 0 and self.word(at) in TYPE_WORDS:
                return "type"
        return "values"

    def _classify(self):
        parents = []
        for index, token in enumerate(self.tokens):
            if token.text == "{" and token.kind == "sign" and index in self.partners:
                parent = self.blocks[parents[-1]] if parents else None
                kind = self._block_kind(index, parent)
                self.blocks[index] = kind
                if kind == "code" and "code" not in (self.blocks[each] for each in parents):
                    self._add_function(index)
                parents.append(index)
            elif parents and index == self.partners.get(parents[-1]):
                parents.pop()

    def _add_function(self, opening):
        first = opening
        name = ""
        start = self._declaration_start(opening)
        for at in range(start, opening):
            if self.word(at) != "(" or at not in self.partners:
                continue
            if name:
                continue
            begin = at
            while begin > start and (self.tokens[begin - 1].kind == "word"
                                     or self.word(begin - 1) in ("::", "~")):
                joined = self.tokens[begin - 1].kind == self.tokens[begin].kind == "word"
                if joined and self.word(begin - 1) != "operator":
                    break
                begin -= 1
            words = "".join(self.word(each) for each in range(begin, at))
            if not words or words.isupper() or words in CHECKS:
                continue
            name = words
            after = self.partners[at] + 1
            while after < opening and self.word(after) in ("noexcept", "const"):
                after += 1
            if self.word(after) == ":":
                first = after
        self.functions.append((Span(first, self.partners[opening]), name or "?"))

    # Statements

    def _read_block(self, first, end):
        index = first
        while index < end:
            index = self._read_statement(index, end)

    def _read_statement(self, index, end):
        """Notes one statement; the index behind it."""
        word = self.word(index)
        if index >= end:
            return end
        if word == "{":
            return self.partners[index] + 1
        if word in CONTROL:
            opening = index + 1
            while opening < end and self.word(opening) != "(":
                opening += 1
            closing = self.partners.get(opening, end)
            if word in ("if", "while") and self.word(index + 1) == "(" and closing > opening + 1:
                self.conditions.append(Span(opening + 1, closing - 1))
            index = self._read_statement(closing + 1, end)
            return self._read_statement(index + 1, end) if self.word(index) == "else" else index
        if word in ("do", "try", "else"):
            return self._read_statement(index + 1, end)
        if word in ("case", "default") or (self.word(index + 1) == ":"
                                           and self.tokens[index].kind == "word"):
            while index < end and self.word(index) != ":":
                index += 1
            return index + 1
        first = index
        while index < end and self.word(index) != ";":
            index = self.partners[index] if self.word(index) in ("(", "[", "{") else index
            index += 1
        if index < end:
            self.statements.append(Span(first, index))
        return index + 1

    # Checks, annotations and log messages

    def callee_of(self, opening):
        """The last word in front of a bracket, or nothing."""
        at = opening - 1
        if self.word(at) in (">", ">>") and not self.is_spaced(at):
            depth = 0
            while at > 0:
                depth += {">": 1, ">>": 2, "<": -1}.get(self.word(at), 0)
                at -= 1
                if depth <= 0:
                    break
        return self.tokens[at].text if at >= 0 and self.tokens[at].kind == "word" else ""

    def _find_skipped(self):
        """Indexes of the tokens inside checks, annotations and log messages."""
        skipped = set()
        for index, token in enumerate(self.tokens):
            if token.text != "(" or index not in self.partners:
                continue
            name = self.callee_of(index)
            before = self.word(index - 2)
            is_macro = len(name) > 2 and name.isupper()
            is_log = (before == "::" and self.word(index - 3) in LOGS
                      or name in LOGGING and before not in (".", "->"))
            if is_macro or name in CHECKS or is_log:
                skipped.update(range(index - 1, self.partners[index] + 1))
        return skipped
