"""C++ as tokens: comments, white space and preprocessor lines are left out."""

import dataclasses
import re

PATTERN = re.compile(r"""
    (?P<space>\s+)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]*)\(.*?\)(?P=fence)"
             | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
             | (?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><=>|->\*|<<=|>>=|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.VERBOSE | re.DOTALL)
DIRECTIVE = re.compile(r"(?:[^\n\\]|\\.)*", re.DOTALL)
CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str  # string (characters too), number, word or sign
    text: str
    start: int
    end: int


def tokens_of(text):
    found = []
    position = 0
    begins_line = True
    while position < len(text):
        if begins_line and text[position] == "#":
            position = DIRECTIVE.match(text, position).end()
            continue
        match = PATTERN.match(text, position)
        kind = match.lastgroup if match.lastgroup != "fence" else "string"
        if kind == "space":
            begins_line = begins_line or "\n" in match[0]
        elif kind != "comment":
            found.append(Token(kind, match[0], position, match.end()))
            begins_line = False
        position = match.end()
    return found


def partners_of(tokens):
    """Index of each bracket -> index of its partner; brackets without one are left out."""
    partners = {}
    open_ = []
    for index, token in enumerate(tokens):
        if token.kind != "sign":
            continue
        if token.text in CLOSING:
            open_.append(index)
        elif token.text in CLOSING.values():
            while open_ and CLOSING[tokens[open_[-1]].text] != token.text:
                open_.pop()
            if open_:
                partners[index] = open_.pop()
                partners[partners[index]] = index
    return partners
