#!/usr/bin/env python3
"""Checks the project's rules that compilers do not: includes between folders, no circles of units, no
clock or random device in pure folders, small files and classes. Sources must name each decision record
and no other, and nothing may be left open.

    tools/structure.py [ROOT]     a line for each fault; exit status 1 if there is any
"""

import pathlib
import re
import subprocess
import sys

import circles
import classes
import decisions

FILE_LINES_MAX = 600

# Folder -> folders of the project that it may include, in addition to itself. The longest match counts.
MAY_INCLUDE = {
    "base": [],
    "base/cli": ["base"],
    "cmake/precompiled": [],
    "filter": ["base"],
    "filter/published": ["base", "filter"],
    "filter/cli": ["base", "base/cli", "filter", "filter/published"],
    "cache": ["base", "filter"],
    "config": ["base", "filter", "cache"],
    "proxy/http": ["base"],
    "proxy/tls": ["base"],
    "proxy/h2": ["base", "proxy/http"],
    "proxy/coding": ["base", "proxy/http"],
    "proxy/net": ["base"],
    "proxy/admin": ["base", "proxy/http", "proxy/net"],
    "proxy/upgrade": ["base", "proxy/net"],
    "proxy/ca": ["base"],
    "proxy/ca/cli": ["base", "base/cli", "config", "proxy/ca"],
    "proxy/cli": ["base", "base/cli", "config", "proxy/ca/cli", "proxy/disk/cli", "proxy/observe",
                  "proxy/settings", "proxy/process"],
    "proxy/store": ["base", "cache", "proxy/http"],
    "proxy/disk": ["base", "filter", "cache"],
    "proxy/disk/cli": ["base", "base/cli", "filter", "cache", "proxy/disk", "proxy/settings",
                       "proxy/transfer"],
    "proxy/publish": ["base", "filter", "filter/published", "cache", "proxy/http"],
    "proxy/observe": ["base", "cache", "config", "proxy/http", "proxy/h2", "proxy/store",
                      "proxy/disk"],
    "proxy/settings": ["base", "cache", "config", "filter", "proxy/http", "proxy/coding", "proxy/tls",
                       "proxy/ca", "proxy/net", "proxy/observe"],
    "proxy/fleet": ["base", "config", "proxy/net", "proxy/observe", "proxy/settings"],
    "proxy/request": ["base", "config", "filter", "cache", "proxy/http", "proxy/net", "proxy/store",
                      "proxy/observe", "proxy/settings"],
    "proxy/transfer": ["base", "filter", "cache", "proxy/http", "proxy/coding", "proxy/net",
                       "proxy/store", "proxy/disk", "proxy/observe"],
    "proxy/exchange": ["base", "filter", "cache", "config", "proxy/http", "proxy/coding", "proxy/net",
                       "proxy/store",
                       "proxy/disk", "proxy/publish", "proxy/observe", "proxy/settings", "proxy/request",
                       "proxy/transfer"],
    "proxy/intake": ["base", "config", "filter", "cache", "proxy/http", "proxy/net", "proxy/store",
                     "proxy/observe", "proxy/settings", "proxy/request", "proxy/transfer", "proxy/exchange"],
    "proxy/client": ["base", "config", "proxy/http", "proxy/h2", "proxy/coding", "proxy/net", "proxy/store",
                     "proxy/observe", "proxy/settings", "proxy/request", "proxy/transfer", "proxy/exchange",
                     "proxy/intake"],
    "proxy/process": ["base", "base/cli", "filter", "filter/published", "cache", "config", "proxy"],
    "proxy/origin": ["base", "filter", "cache", "config", "proxy/http", "proxy/h2", "proxy/coding", "proxy/net",
                     "proxy/store",
                     "proxy/disk", "proxy/publish", "proxy/observe", "proxy/settings", "proxy/request",
                     "proxy/transfer"],
    "sim": ["base", "base/cli", "filter", "cache", "config"],
    "tests": ["base", "base/cli", "filter", "filter/published", "filter/cli", "cache", "config",
              "proxy", "sim"],
}

# Included header -> folders that may include it. The first match counts.
THIRD_PARTY = [
    (r"event2/", ["proxy/net", "sim/drive", "tests"]),
    (r"event\.h|evhttp\.h", []),
    (r"ares.*\.h", ["proxy/net"]),
    (r"openssl/(ssl|tls1|dtls1)\.h", ["proxy/net", "tests"]),
    (r"openssl/(x509_vfy|x509v3)\.h", ["proxy/net", "proxy/ca", "tests"]),
    (r"openssl/", ["filter", "proxy/net", "proxy/ca", "sim/cli", "tests"]),
    (r"xxhash\.h", ["filter", "cache", "proxy/disk", "tests/filter", "tests/bench"]),
    (r"toml\+\+/", ["config"]),
    (r"spdlog/|fmt/", ["proxy/observe", "proxy/settings", "proxy/origin", "proxy/exchange",
                        "proxy/fleet", "proxy/process", "proxy/cli", "tests/simulate"]),
    (r"CLI/", ["base/cli", "filter/cli", "proxy/disk/cli", "proxy/ca/cli", "proxy/cli",
               "proxy/process", "sim"]),
    (r"nlohmann/", ["filter/published", "filter/cli", "proxy/disk/cli", "proxy/observe",
                    "proxy/fleet", "proxy/process", "proxy/cli", "sim", "tests"]),
    (r"boost/", ["proxy/http", "tests/fuzz"]),
    (r"curl/", ["filter/cli", "sim/drive", "tests"]),
    (r"re2/", ["proxy/settings"]),
    (r"zlib\.h|zstd\.h", ["proxy/publish", "proxy/coding", "sim", "tests"]),
    (r"hiredis/", ["proxy/fleet"]),
    (r"nghttp2/", ["proxy/h2", "tests"]),
    (r"brotli/", ["proxy/coding", "tests"]),
    (r"lzma\.h", ["sim", "tests"]),
    (r"xgboost/", ["sim/learn"]),
    (r"pybind11/", ["sim/python"]),
    (r"catch2/", ["tests"]),
    (r"benchmark/|liburing", ["tests/bench"]),
]
NOT_IN_HEADERS = re.compile(r"re2/|hiredis/|nghttp2/|spdlog/|toml\+\+/|CLI/|nlohmann/|boost/|curl/")

PURE = ["filter", "cache", "config", "proxy/http", "proxy/h2", "proxy/coding", "proxy/tls",
        "proxy/publish", "sim/workload", "sim/theory",
        "sim/replay"]
IMPURE = re.compile(
    r"\b(monotonic_now|wall_now|clock_gettime|gettimeofday|timespec_get|getrandom|getentropy|"
    r"arc4random\w*|RAND_\w+|srand|rand|random_device)\b|_clock::now|\btime\s*\(\s*(nullptr|NULL|0)"
    r"|/dev/u?random")

# Written so that this file does not find itself.
LEFT_OPEN = re.compile(r"\b(T[O]DO|F[I]XME|X[X]X|H[A]CK|not imple[m]ented|unimple[m]ented)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
PROJECT = ("base/", "filter/", "cache/", "config/", "proxy/", "sim/", "tests/")


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


def layer_of(path):
    fits = [folder for folder in MAY_INCLUDE if within(path, folder)]
    return max(fits, key=len, default=None)


def code_only(text):
    """The text without comments and strings; lines stay where they are."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    pattern = r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/'
    return re.sub(pattern, blank, text, flags=re.DOTALL)


def check_include(path, quote, target):
    folder = str(pathlib.PurePosixPath(path).parent)
    layer = layer_of(path)
    if quote == '"':
        if not target.startswith(PROJECT):
            return f'"{target}": project headers are included by their path from the root'
        allowed = MAY_INCLUDE[layer] + [layer]
        # A folder that has rules of its own is meant by its own name only.
        if not any(layer_of(target) == each or (each not in MAY_INCLUDE and within(target, each))
                   for each in allowed):
            return f'"{target}": {layer} may include {", ".join(allowed)}'
        return None
    for pattern, folders in THIRD_PARTY:
        if re.match(pattern, target):
            if not any(within(folder, each) for each in folders):
                return f"<{target}>: only {', '.join(folders) or 'nobody'} may include it"
            break
    if path.endswith(".h") and not within(path, "tests") and NOT_IN_HEADERS.match(target):
        return f"<{target}>: too heavy for a header"
    return None


def check_source(path, text):
    for match in INCLUDE.finditer(text):
        fault = check_include(path, match.group(1), match.group(2))
        if fault:
            yield text.count("\n", 0, match.start(2)) + 1, "includes " + fault
    folder = str(pathlib.PurePosixPath(path).parent)
    if any(within(folder, pure) for pure in PURE):
        code = code_only(text)
        for match in IMPURE.finditer(code):
            yield code.count("\n", 0, match.start()) + 1, f"{match.group()}: {folder} is pure"


# Base's own adds what keeps GCC from dropping it (docs/decisions/0622).
PREFETCH = re.compile(r"\b__builtin_prefetch\b")
MAY_PREFETCH = ("base/prefetch.h", "filter/split_line.h", "filter/counting_filter.cc")


def check_prefetch(path, text):
    code = code_only(text)
    if path not in MAY_PREFETCH:
        for match in PREFETCH.finditer(code):
            yield code.count("\n", 0, match.start()) + 1, f"{match.group()}: may be dropped, see base/prefetch.h"


def check_text(path, text):
    lines = text.split("\n")
    if path.endswith((".h", ".cc", ".py")) and len(lines) - 1 > FILE_LINES_MAX:
        yield FILE_LINES_MAX, f"{len(lines) - 1} lines, at most {FILE_LINES_MAX}"
    for number, line in enumerate(lines, 1):
        left = LEFT_OPEN.search(line)
        if left:
            yield number, f"left open: {left.group()}"
        if line.endswith((" ", "\t", "\r")) and not path.endswith(".md"):
            yield number, "white space at the end of the line"
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end of the file"


def check_file(path, text):
    yield from check_text(path, text)
    if path.endswith((".h", ".cc")):
        if layer_of(path) is None:
            yield 1, "this folder has no place in the layering (tools/structure.py)"
        else:
            yield from check_source(path, text)
            yield from check_prefetch(path, text)


def check_tree(texts):
    """Faults that need several files to be seen. `texts`: path -> text of each header and source."""
    found = [(f"{unit}.h", 1, fault)
             for unit, fault in circles.faults(texts, circles.STILL_IN_CIRCLES)]
    product = {path: code_only(text) for path, text in texts.items()
               if any(within(path, folder) for folder in classes.FOLDERS)}
    return found + list(classes.faults(product, classes.STILL_TOO_LARGE))


def tracked_files(root):
    names = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True).stdout.decode().split("\0")
    # Corpora and expected outputs are bytes, not text of ours.
    return [name for name in names if name and "/corpus/" not in name and "/golden/" not in name]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = []
    texts = {}
    all_texts = {}
    for name in tracked_files(root):
        file = root / name
        if not file.is_file():
            continue
        try:
            text = file.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        found += [(name, line, fault) for line, fault in check_file(name, text)]
        all_texts[name] = text
        if name.endswith((".h", ".cc")):
            texts[name] = text
    found += check_tree(texts)
    found += decisions.faults(all_texts)
    for name, line, fault in found:
        print(f"{name}:{line}: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
