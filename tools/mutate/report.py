"""The report of a run: survivors by line, rate and time by folder."""

import collections
import dataclasses
import json
import pathlib

STAGE_NAMES = ("own", "unit", "road", "simulation")


class Report:
    def __init__(self):
        self.results = []     # (Mutant, Verdict), as they came
        self.equivalent = []  # (Mutant, reason)
        self.notes = []

    def add(self, mutant, verdict):
        self.results.append((mutant, verdict))

    def counted(self):
        return [each for each in self.results if each[1].outcome in ("killed", "survived")]

    def survivors(self):
        found = [mutant for mutant, verdict in self.results if verdict.outcome == "survived"]
        return sorted(found, key=lambda each: (each.file, each.line, each.start))

    def rate(self):
        counted = self.counted()
        return 1.0 if not counted else 1 - len(self.survivors()) / len(counted)

    def by_folder(self):
        folders = collections.defaultdict(collections.Counter)
        for mutant, verdict in self.results:
            counts = folders[str(pathlib.Path(mutant.file).parent)]
            counts[verdict.outcome] += 1
            counts["seconds"] += verdict.seconds
            if verdict.outcome == "killed":
                counts[f"by {verdict.stage}"] += 1
                counts["by time"] += verdict.how == "time"
        for mutant, _ in self.equivalent:
            folders[str(pathlib.Path(mutant.file).parent)]["equivalent"] += 1
        return dict(sorted(folders.items()))

    def by_kind(self):
        kinds = collections.defaultdict(collections.Counter)
        for mutant, verdict in self.results:
            kinds[mutant.kind][verdict.outcome] += 1
        return dict(sorted(kinds.items()))

    def text(self, elapsed):
        lines = []
        survivors = self.survivors()
        if survivors:
            lines.append(f"{len(survivors)} survived:")
        for each in survivors:
            lines += [f"{each.place}: {each.kind} in {each.function}", f"    was {each.was}",
                      f"    now {each.now or '(nothing)'}"]
        lines += ["", table("folder", self.by_folder()), "", table("kind", self.by_kind())]
        lines += [f"note: {note}" for note in self.notes]
        invalid = sum(verdict.outcome == "invalid" for _, verdict in self.results)
        same = sum(verdict.outcome == "same" for _, verdict in self.results)
        counted = len(self.counted())
        lines += ["", f"not counted: {invalid} that do not compile, {same} that compile to the same "
                  f"code, {len(self.equivalent)} judged equivalent",
                  f"{counted - len(survivors)} of {counted} mutants killed ({self.rate():.1%}), "
                  f"{len(survivors)} survived, in {elapsed:.0f} s"]
        return "\n".join(lines)

    def json(self, elapsed, settings):
        return json.dumps({
            "settings": settings,
            "seconds": round(elapsed, 1),
            "killed": len(self.counted()) - len(self.survivors()),
            "survived": len(self.survivors()),
            "rate": round(self.rate(), 4),
            "folders": self.by_folder(),
            "kinds": self.by_kind(),
            "notes": self.notes,
            "equivalent": [{**described(mutant), "reason": reason}
                           for mutant, reason in self.equivalent],
            "mutants": [{**described(mutant), **dataclasses.asdict(verdict)}
                        for mutant, verdict in self.results],
        }, indent=1)


def described(mutant):
    return {name: getattr(mutant, name)
            for name in ("file", "line", "function", "kind", "was", "now", "nth")}


def table(name, rows):
    columns = ("mutants", "killed", "survived", "rate", "own", "unit", "road", "simul.", "time",
               "seconds")
    lines = [f"{name:<24}" + "".join(f"{each:>9}" for each in columns)]
    for row, counts in rows.items():
        killed, survived = counts["killed"], counts["survived"]
        rate = f"{killed / (killed + survived):.0%}" if killed + survived else "-"
        values = [killed + survived, killed, survived, rate,
                  *(counts[f"by {stage}"] for stage in STAGE_NAMES), counts["by time"],
                  round(counts["seconds"])]
        if name == "kind":
            values = values[:4]
        lines.append(f"{row:<24}" + "".join(f"{each:>9}" for each in values))
    if name == "kind":
        lines[0] = f"{name:<24}" + "".join(f"{each:>9}" for each in columns[:4])
    return "\n".join(lines)
