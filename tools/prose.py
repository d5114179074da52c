#!/usr/bin/env python3
"""Counts sentences that break docs/STYLE.md, by rule and folder, in documents, comments and
messages. A count may only fall: the accepted ones are in tools/prose_counts.json.

    tools/prose.py                  check; exit status 1 if a count has risen
    tools/prose.py --update         write the counts that have fallen
    tools/prose.py --list RULE [FOLDER]   all findings of a rule, with file:line
    tools/prose.py --pages          a table of the documents: words, sentences, findings
    tools/prose.py --glossary       words not to use, and those to use instead
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

import prose_text

COUNTS = "tools/prose_counts.json"
WORDS_MAX = 40

OPENERS = {"what", "who", "whose", "whom", "whoever", "whatever", "where", "wherever", "of"}
# Words that have no other meaning in this project -> words to use.
GLOSSARY = {
    r"(?:is|are|was|were|be|been) told(?: of)?": "receives, is notified",
    r"asked of (?:the|its|an|it|them)": "requested from, sent to",
    r"whoever": "the noun: client, user, operator",
    r"(?:is|are) to be had": "is available",
    r"(?:is|are) looked at|looks? at": "check, inspect",
    r"at once": "immediately, at the same time",
    r"beside": "next to, compared with, in addition to",
    r"let in|taken in": "admitted, accepted",
    r"given up": "aborted, cancelled",
    r"under way": "in progress",
    r"neighbou?rs?(?:['’]s?)?": "peer",
    r"in the stead of": "instead of",
    r"what became of|what becomes of": "result, outcome",
    r"what is (?:stored|held|kept)": "cached objects",
    r"nothing of (?:a|the|its) body": "no body bytes",
    r"none but": "only",
    r"come(?:s)? to": "results in, reaches",
    r"moved on": "re-inserted, rewritten",
    r"wish(?:es)?": "request, intent",
    r"is no (?:request|response|purge|object|hit)": "is not a ...",
}
# Words that may mean something else: people judge them.
JUDGED = {
    "asked for": "requested",
    "way, road": "path, route",
    "whose it is": "owner, client identity",
    "forgotten": "evicted (objects), expired (keys of a filter)",
    "the older, the current one": "older generation, current generation",
    "answer": "response",
    "server of an origin": "upstream server",
    "doors, seat, gate": "connection slot, access check",
    "as it is": "unchanged",
    "ready lines, told lines": "buffered log lines",
    "hour (of a filter)": "hourly filter",
    "room": "buffer space, capacity",
}
WORD = re.compile(r"\b(?:" + "|".join(rf"({each})" for each in GLOSSARY) + r")\b")
RULES = {
    "start": "a sentence begins with What, Who, Where or Of",
    "long": f"a sentence has more than {WORDS_MAX} words",
    "word": "a word of the glossary (tools/prose.py --glossary)",
    "comment": "a comment begins with What, Who, Where or Of",
}

Finding = collections.namedtuple("Finding", "path line last rule text")


def rules_of(sentence):
    """(first line, last line, rule, text) of each fault of a sentence."""
    lines = sentence.line, sentence.last
    words = prose_text.words(sentence.text)
    if words and words[0].strip("_,:;.'").lower() in OPENERS and not sentence.text.rstrip().endswith("?"):
        rule = "comment" if sentence.opens_comment else "start"
        yield sentence.line, sentence.line, rule, " ".join(words[:6])
    if len(words) > WORDS_MAX:
        yield *lines, "long", f"{len(words)} words: {' '.join(words[:6])} ..."
    without_code = re.sub(r"`[^`]*`", lambda code: "`" * len(code.group()), sentence.text)
    for match in WORD.finditer(without_code.lower()):
        better = list(GLOSSARY.values())[match.lastindex - 1]
        line = sentence.line_at(match.start())
        yield line, line, "word", f'"{match.group()}": {better}'


def findings(path, text):
    return [Finding(path, *fault) for sentence in prose_text.sentences(path, text)
            for fault in rules_of(sentence)]


def counts_of(found):
    """rule -> folder -> count, without zeros."""
    counts = {rule: collections.Counter() for rule in RULES}
    for each in found:
        counts[each.rule][str(pathlib.PurePosixPath(each.path).parent)] += 1
    return {rule: dict(sorted(folders.items())) for rule, folders in counts.items()}


def compare(accepted, counts):
    """(risen, fallen): (rule, folder, before, now) of each folder whose count differs."""
    risen, fallen = [], []
    for rule in RULES:
        before, now = accepted.get(rule, {}), counts[rule]
        for folder in sorted({*before, *now}):
            pair = before.get(folder, 0), now.get(folder, 0)
            if pair[0] != pair[1]:
                (risen if pair[1] > pair[0] else fallen).append((rule, folder, *pair))
    return risen, fallen


def may_replace(accepted, counts):
    """True if no rule's sum rises: a file may move to another folder with its findings."""
    return all(sum(counts[rule].values()) <= sum(accepted[rule].values())
               for rule in RULES if rule in accepted)


def git(root, *arguments):
    ended = subprocess.run(["git", "-C", root, *arguments], capture_output=True, check=False)
    return ended.stdout.decode(errors="replace") if ended.returncode == 0 else ""


def texts(root):
    """path -> text of each file that has prose."""
    found = {}
    names = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in sorted(filter(None, names)):
        file = root / name
        if not prose_text.may_have_prose(name) or not file.is_file():
            continue
        try:
            text = file.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        if prose_text.kind_of(name, text):
            found[name] = text
    return found


def finds_new(root, paths):
    """A predicate: true for a finding that is not in the commit that last wrote the accepted counts."""
    base = git(root, "log", "-1", "--format=%H", "--", COUNTS).strip()
    untracked = set(git(root, "ls-files", "--others", "--exclude-standard").splitlines())
    found, path = set(), None
    for line in git(root, "diff", "-U0", base, "--", *paths).splitlines() if base else []:
        if line.startswith("+++ "):
            path = line[6:]
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first = int(hunk.group(1))
            found.update((path, first + i) for i in range(int(hunk.group(2) or 1)))
    return lambda each: each.path in untracked or any(
        (each.path, line) in found for line in range(each.line, each.last + 1))


def report(root, found, risen, fallen):
    """Prints a line for each finding that may be the new one of a folder whose count has risen."""
    is_new = finds_new(root, sorted({each.path for each in found})) if risen else None
    for rule, folder, before, now in risen:
        there = [each for each in found
                 if each.rule == rule and str(pathlib.PurePosixPath(each.path).parent) == folder]
        for each in list(filter(is_new, there)) or there:
            print(f"{each.path}:{each.line}: {rule}: {each.text}")
        print(f"prose: {folder}: {rule} has risen from {before} to {now} ({RULES[rule]}); "
              "docs/STYLE.md says how to write it")
    if fallen:
        parts = [f"{folder} {rule} {before} -> {now}" for rule, folder, before, now in fallen]
        print(f"prose: counts have fallen: run tools/prose.py --update ({', '.join(parts)})")


def check(root, update):
    found = [each for path, text in texts(root).items() for each in findings(path, text)]
    counts = counts_of(found)
    file = root / COUNTS
    accepted = json.loads(file.read_text()) if file.exists() else {}
    risen, fallen = compare(accepted, counts)
    if update and may_replace(accepted, counts):
        file.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")
        return 0
    report(root, found, risen, fallen)
    return 1 if risen else 0


def print_pages(root):
    rows = []
    for path, text in texts(root).items():
        if path.endswith(".md"):
            number = len(list(prose_text.sentences(path, text)))
            counts = collections.Counter(each.rule for each in findings(path, text))
            rows.append((path, len(text.split()), number, *(counts[rule] for rule in RULES
                                                            if rule != "comment")))
    print(f"{'page':55}{'words':>8}{'sentences':>11}{'start':>7}{'%':>6}{'long':>6}{'word':>6}")
    rows.append(("all", *map(sum, list(zip(*rows))[1:])) if rows else ("all", 0, 0, 0, 0, 0))
    for path, length, number, start, long, word in rows:
        share = 100 * start / number if number else 0
        print(f"{path:55}{length:8}{number:11}{start:7}{share:6.1f}{long:6}{word:6}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--update", action="store_true", help="write the counts that have fallen")
    chosen.add_argument("--list", nargs="+", metavar=("RULE", "FOLDER"),
                        help=f"print the findings of a rule: {', '.join(RULES)}")
    chosen.add_argument("--pages", action="store_true", help="print a table of the documents")
    chosen.add_argument("--glossary", action="store_true", help="print words not to use, and their betters")
    options = parser.parse_args()
    if options.glossary:
        for word, better in {**GLOSSARY, **JUDGED}.items():
            print(f"{word.replace('(?:', '(').replace('|', '/')}: {better}")
        return 0
    if options.pages:
        print_pages(options.root)
        return 0
    if options.list:
        rule, folder = options.list[0], ([*options.list[1:], ""])[0]
        for path, text in texts(options.root).items():
            for each in findings(path, text) if path.startswith(folder) else []:
                if each.rule == rule:
                    print(f"{path}:{each.line}: {each.text}")
        return 0
    return check(options.root, options.update)


if __name__ == "__main__":
    sys.exit(main())
