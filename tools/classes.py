"""Finds classes that are too large: private functions, and flags in addition to their states. Reads
headers and sources as text. Called by structure.py."""

import re

FOLDERS = ["base", "filter", "cache", "config", "proxy", "sim"]  # with those below them
PRIVATE_FUNCTIONS_MAX = 25
BOOLEANS_MAX = 5

# Class -> (private functions, booleans) that it may have today. This list only ever gets shorter,
# and its numbers smaller: it must become empty.
STILL_TOO_LARGE = {
}

CLASS = re.compile(r"\b(class|struct)\s+(?:ENCORE_\w+(?:\([^()]*\))?\s+)?(\w+(?:::\w+)*)\s*"
                   r"(?:final\s*)?(?::(?!:)[^;{}()]*)?\{")
ACCESS = re.compile(r"\b(public|protected|private)\s*:(?!:)")
BOOLEAN = re.compile(r"(?:mutable\s+)?(?:static\s+)?(?:bool|std::atomic<bool>|std::atomic_bool)\s+"
                     r"\w+(?:\s*:\s*1)?\s*(?:=.*|\{.*)?$", re.DOTALL)
NOT_A_MEMBER = re.compile(r"(using|friend|class|struct|enum|typedef|static_assert|union)\b")


def bodies(code):
    """(class or struct, name, offset, text between its braces) of each, nested ones too."""
    for match in CLASS.finditer(code):
        if re.search(r"\benum\s*$", code[:match.start()]):
            continue
        depth = 1
        at = match.end()
        while at < len(code) and depth != 0:
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        yield match.group(1), match.group(2), match.start(), code[match.end():at - 1]


def members(body):
    """The declarations of a class, each as text; what stands in inner braces is left out."""
    text = ""
    depth = 0
    for char in body:
        if char == "{":
            depth += 1
            text += "{" if depth == 1 else ""
        elif char == "}":
            depth -= 1
            text += "}" if depth == 0 else ""
            is_inner_class = NOT_A_MEMBER.match(ACCESS.sub("", text).strip())
            if depth == 0 and "(" in text and "=" not in text.split("(")[0] and not is_inner_class:
                yield text  # a function with its body
                text = ""
        elif depth == 0 and char == ";":
            yield text
            text = ""
        elif depth == 0:
            text += char


def count(kind, body):
    """Numbers of private functions, of all functions, and of boolean members."""
    is_private = kind == "class"
    private = functions = booleans = 0
    for member in members(body):
        for access in ACCESS.findall(member):
            is_private = access == "private"
        text = ACCESS.sub("", member)
        text = re.sub(r"\bENCORE_\w+(\([^()]*\))?", "", text).strip()
        text = re.sub(r"^template\s*<[^>]*>\s*", "", text)
        if NOT_A_MEMBER.match(text):
            continue
        if BOOLEAN.match(text):
            booleans += 1
            continue
        while re.search(r"<[^<>]*>", text):
            text = re.sub(r"<[^<>]*>", "", text)
        # A pointer to a function is data.
        if re.search(r"\w\s*\((?!\s*\*)", text.split("=")[0].split("{")[0]):
            functions += 1
            private += is_private
    return private, functions, booleans


def faults(codes, allowed):
    """(path, line, what is wrong). `codes`: path -> code without comments and strings."""
    large = set()
    for path, code in sorted(codes.items()):
        for kind, name, at, body in bodies(code):
            private, functions, booleans = count(kind, body)
            # A struct of data alone is a record of what was said, not a state of ours.
            if functions == 0:
                booleans = 0
            if private > PRIVATE_FUNCTIONS_MAX or booleans > BOOLEANS_MAX:
                large.add(name)
            most_private, most_booleans = allowed.get(name, (PRIVATE_FUNCTIONS_MAX, BOOLEANS_MAX))
            line = code.count("\n", 0, at) + 1
            if private > most_private:
                yield path, line, f"{name}: {private} private functions, at most {most_private}"
            if booleans > most_booleans:
                yield path, line, f"{name}: {booleans} boolean members, at most {most_booleans}"
    for name in sorted(set(allowed) - large):
        yield "tools/classes.py", 1, f"{name}: is not too large any more, take it off the list"
