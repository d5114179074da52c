"""equivalent.toml: mutants that behave like the program, each with a reason.

An entry names its mutant by file, function, kind, the line before and after, and a number if several
mutants share these. Lines may move. When a line changes, its entry matches nothing and must be removed.
"""

import tomllib

FIELDS = {"file": str, "function": str, "kind": str, "was": str, "now": str, "reason": str, "nth": int}
NEEDED = FIELDS.keys() - {"nth"}


class Faulty(Exception):
    """The text has a line for each fault."""


def read_entries(text):
    """Key of a mutant -> reason."""
    entries = {}
    faults = []
    for number, each in enumerate(tomllib.loads(text).get("equivalent", []), 1):
        place = f"equivalent.toml, entry {number}"
        missing = sorted(NEEDED - each.keys())
        unknown = sorted(each.keys() - FIELDS.keys())
        wrong = sorted(name for name, kind in FIELDS.items() if not isinstance(each.get(name, kind()), kind))
        if missing or unknown or wrong:
            faults.append(f"{place}: missing {missing}, unknown {unknown}, of the wrong type {wrong}")
            continue
        if not each["reason"].strip():
            faults.append(f"{place}: no reason")
        key = key_of(each)
        if key in entries:
            faults.append(f"{place}: there is one of this mutant already")
        entries[key] = each["reason"]
    if faults:
        raise Faulty("\n".join(faults))
    return entries


def key_of(entry):
    return (entry["file"], entry["function"], entry["kind"], entry["was"], entry["now"],
            entry.get("nth", 1))


def stale_entries(entries, mutants, files):
    """Returns a line for each entry of `files` that matches no mutant."""
    known = {each.key for each in mutants}
    return [f"equivalent.toml: nothing matches {key[0]}, {key[1]}, {key[2]}: {key[3]}"
            for key in entries if key[0] in files and key not in known]


def entry_of(mutant):
    """Returns the entry for equivalent.toml, with an empty reason."""
    lines = ["[[equivalent]]"]
    for name in ("file", "function", "kind", "was", "now"):
        lines.append(f"{name} = {quoted(getattr(mutant, name))}")
    if mutant.nth != 1:
        lines.append(f"nth = {mutant.nth}")
    return "\n".join([*lines, 'reason = ""', ""])


def quoted(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f"'{text}'" if "'" not in text else f'"{escaped}"'
