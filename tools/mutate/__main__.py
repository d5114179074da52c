#!/usr/bin/env python3
"""Plants small faults into sources, one at a time, and tells which of them no test sees."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time

import choose
import equivalent
from mutants import KEY_FIELDS, KINDS, mutants_of
from processes import Processes, Stopped
from report import Report
from trial import HEADER_SOURCES_MAX, STAGES, Choice, Room, Trials, read_roads
from world import NotBuilt, World

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EPILOG = """\
Each mutant is compiled and linked as the build does it, then run through the tests, until one fails:
the test files that include it (own), the other unit tests that link it (unit), the end-to-end programs
of its folder (road; see tools/mutate/roads.toml), the simulation. A mutant that hangs is killed by time.
Sources, tests and the build are those of the start of the run: you may go on working.

examples:
  ./dev mutate proxy/transfer/transfer.cc            all mutants of one file
  ./dev mutate --limit 20 proxy/client proxy/origin  twenty of these folders
  ./dev mutate --changed                             lines that differ from main
  ./dev mutate --changed HEAD~2 --stages own,unit    lines of a commit, by unit tests alone
  ./dev mutate --share 100 proxy cache               one in a hundred, others each day
  ./dev mutate --list --kinds swap,copy cache        what would be tried
  ./dev mutate --only proxy/disk/disks.cc:112        those of one line again
  ./dev mutate --stages own --json a.json cache      own tests first, then the others for those that survive:
  ./dev mutate --survivors a.json --stages unit,road

Exit status: 0 where all were killed, or as many percent as --at-least asks; 1 where more survived;
2 where it cannot run; 130 where it was interrupted, after a report of what was done until then.
"""


def listed(names):
    def read(text):
        values = tuple(text.split(","))
        for each in values:
            if each not in names:
                raise argparse.ArgumentTypeError(f"{each}; accepted: {','.join(names)}")
        return values
    return read


def number(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}; accepted: 1 and more")
    return value


def read_arguments(arguments):
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="sources, or folders of them")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev-apart",
                        help=argparse.SUPPRESS)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--changed", nargs="?", const="", metavar="COMMIT",
                        help="only lines that a commit or a range A..B wrote; without one, what differs "
                             "from main, or else the last commit")
    parser.add_argument("--only", action="append", default=[], metavar="FILE:LINE",
                        help="only mutants of this line; may be given again")
    parser.add_argument("--survivors", type=pathlib.Path, metavar="FILE",
                        help="those that survived an earlier run, by its --json, as with other stages")
    parser.add_argument("--kinds", type=listed(KINDS), default=KINDS, metavar="KIND,...",
                        help=",".join(KINDS))
    parser.add_argument("--share", type=number, default=1, metavar="N", help="one in N, by turns of a day")
    parser.add_argument("--limit", type=number, metavar="N",
                        help="until N that compile were tried, chosen by chance")
    parser.add_argument("--seed", type=int, metavar="N",
                        help="of --limit's choice, --share's turn and the simulation; a day's number by "
                             "default")
    parser.add_argument("--stages", type=listed(STAGES), default=STAGES, metavar="STAGE,...",
                        help=f"which, in this order; {','.join(STAGES)} by default")
    parser.add_argument("--requests", type=number, default=40000, metavar="N",
                        help="of the simulation, for each mutant; 40000 by default")
    parser.add_argument("--longest", type=number, default=60, metavar="SECONDS",
                        help="leave out what takes longer, of the tests of other folders; 60 by default")
    parser.add_argument("--grace", type=number, default=20, metavar="SECONDS",
                        help="before a test hangs, beyond five times what it usually takes; 20 by default")
    parser.add_argument("--jobs", type=number, default=os.cpu_count(), metavar="N",
                        help="as many mutants at once; the number of cores by default")
    parser.add_argument("--at-least", type=float, metavar="PERCENT", help="how many have to be killed")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the report there, too")
    parser.add_argument("--list", action="store_true", help="print the mutants, run none")
    chosen = parser.parse_args(arguments)
    if not (chosen.files or chosen.only or chosen.survivors) and chosen.changed is None:
        parser.error("which files? Give files or folders, --changed, --survivors or --only FILE:LINE")
    chosen.root, chosen.build = chosen.root.resolve(), chosen.build.resolve()
    return chosen


def wanted_lines(chosen):
    """Returns the files, each with the lines to mutate; None: all of them."""
    files = choose.sources_below(chosen.root, chosen.files) if chosen.files else None
    if files is None and chosen.survivors:
        files = sorted({key[0] for key in chosen.survived if (chosen.root / key[0]).is_file()})
    if chosen.changed is not None:
        lines = choose.changed_lines(chosen.root, chosen.changed or None)
        lines = {name: each for name, each in lines.items() if files is None or name in files}
    else:
        lines = dict.fromkeys(files or [])
    for each in chosen.only:
        name, _, line = each.rpartition(":")
        if not line.isdigit():
            raise choose.Wrong(f"--only {each}: it takes FILE:LINE")
        for file in choose.sources_below(chosen.root, [name]):
            if lines.get(file, ()) is not None:
                lines.setdefault(file, set()).add(int(line))
    return lines


def survivors_of(path):
    """Returns the keys of the mutants that survived, by the report of an earlier run."""
    try:
        mutants = json.loads(path.read_text())["mutants"]
        return {tuple(each[name] for name in KEY_FIELDS) for each in mutants
                if each["outcome"] == "survived"}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise choose.Wrong(f"--survivors {path}: no report of --json: {error}") from error


def read_mutants(chosen, report):
    """Returns the mutants to run, in order, and the text of each file. The report takes equivalent ones."""
    chosen.survived = survivors_of(chosen.survivors) if chosen.survivors else set()
    entries_file = chosen.root / "tools/mutate/equivalent.toml"
    entries = equivalent.read_entries(entries_file.read_text()) if entries_file.exists() else {}
    texts = {}
    found = []
    stale = []
    for file, lines in sorted(wanted_lines(chosen).items()):
        texts[file] = (chosen.root / file).read_text()
        mutants = mutants_of(file, texts[file])
        stale += equivalent.stale_entries(entries, mutants, [file])
        for each in mutants:
            if each.kind not in chosen.kinds or (lines is not None and each.line not in lines):
                continue
            if chosen.survivors and each.key not in chosen.survived:
                continue
            if each.key in entries:
                report.equivalent.append((each, entries[each.key]))
            else:
                found.append(each)
    if stale:
        raise equivalent.Faulty("\n".join(stale))
    found = choose.share_of(found, chosen.share, chosen.seed)
    return choose.shuffled(found, chosen.seed) if chosen.limit else found, texts


class Run:
    """Tries the mutants in order, with one worker for each room."""

    def __init__(self, trials, mutants, texts, limit, report):
        self.trials = trials
        self.mutants = iter(mutants)
        self.texts = texts
        self.limit = limit
        self.report = report
        self.changed = threading.Condition()
        self.running = 0
        self.faults = []
        self.is_stopped = False

    def next(self):
        """The next mutant, or None: those tried are always the first in order of which `limit` count,
        however many workers there are."""
        with self.changed:
            while True:
                if self.is_stopped or self.faults:
                    return None
                left = None if self.limit is None else self.limit - len(self.report.counted())
                if left is None or self.running < left:
                    mutant = next(self.mutants, None)
                    self.running += mutant is not None
                    return mutant
                if left <= 0:
                    return None
                self.changed.wait()

    def work(self, room):
        while (mutant := self.next()) is not None:
            verdict = None
            try:
                verdict = self.trials.try_mutant(mutant, self.texts[mutant.file], room)
            except Stopped:
                pass
            except Exception as error:  # ends the run, with its text
                self.faults.append(error)
            with self.changed:
                self.running -= 1
                if verdict is not None:
                    self.report.add(mutant, verdict)
                    print(line_of(mutant, verdict), flush=True)
                self.changed.notify_all()

    def stop(self):
        self.is_stopped = True
        self.trials.processes.stop()
        with self.changed:
            self.changed.notify_all()

    def run(self, rooms):
        threads = [threading.Thread(target=self.work, args=(room,)) for room in rooms]
        for each in threads:
            each.start()
        try:
            for each in threads:
                while each.is_alive():
                    each.join(0.2)
        except KeyboardInterrupt:
            self.stop()
            for each in threads:
                each.join()
        if self.faults:
            raise self.faults[0]


def line_of(mutant, verdict):
    what = {"killed": f"killed by {verdict.test}" + (", which hung" if verdict.how == "time" else ""),
            "survived": "SURVIVED", "invalid": "does not compile",
            "same": "compiles to the same code"}[verdict.outcome]
    return f"{mutant.place}: {mutant.kind:<8} {what} ({verdict.seconds:.0f} s)"


def remove_abandoned(folder):
    """Removes the folders of runs that were killed."""
    for each in folder.glob("run-*"):
        if not pathlib.Path("/proc", each.name[4:]).exists():
            shutil.rmtree(each, ignore_errors=True)


def try_all(chosen, mutants, texts, report):
    """Tries the mutants; true unless it was interrupted."""
    base = chosen.root / "build/mutate"
    base.mkdir(parents=True, exist_ok=True)
    remove_abandoned(base)
    folder = base / f"run-{os.getpid()}"
    # Not below build/: the paths of sockets in it are to stay short.
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        try:
            processes = Processes()
            world = World(chosen.root, chosen.build, folder)
            choice = Choice(chosen.stages, chosen.requests, seed=chosen.seed, longest=chosen.longest,
                            grace=chosen.grace)
            roads = read_roads(HERE / "roads.toml")
            trials = Trials(world, processes, choice, roads, report.notes.append)
            mutants = with_few_sources(world, mutants, report)
            files = {each.file for each in mutants}
            sources = {source for file in files for source in world.sources_with(file)}
            world.take_snapshot(trials.programs(files), [world.object_of(each) for each in sources])
            rooms = [Room(folder / str(each), pathlib.Path(temporary) / str(each))
                     for each in range(min(chosen.jobs, max(1, len(mutants))))]
            run = Run(trials, mutants, texts, chosen.limit, report)
            run.run(rooms)
            return not run.is_stopped
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def with_few_sources(world, mutants, report):
    """Removes mutants of sources that no target compiles, and of headers that too many include."""
    counts = {file: len(world.sources_with(file))
              for file in dict.fromkeys(each.file for each in mutants)}
    for why, left_out in (
            ("no target compiles them", [file for file, count in counts.items() if count == 0]),
            (f"more than {HEADER_SOURCES_MAX} sources include them",
             [file for file, count in counts.items() if count > HEADER_SOURCES_MAX])):
        if left_out:
            report.notes.append(f"left out, for {why}: {', '.join(sorted(left_out))}")
    return [each for each in mutants if 0 < counts[each.file] <= HEADER_SOURCES_MAX]


def interrupt(*_):
    """The first one ends the run; what is cleaned up then is not interrupted in its turn."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def main():
    chosen = read_arguments(sys.argv[1:])
    chosen.seed = choose.today() if chosen.seed is None else chosen.seed
    signal.signal(signal.SIGINT, interrupt)  # a shell's background jobs begin with it ignored
    signal.signal(signal.SIGTERM, interrupt)
    report = Report()
    started = time.monotonic()
    try:
        mutants, texts = read_mutants(chosen, report)
        if chosen.list:
            for each in mutants[:chosen.limit]:
                print(f"{each.place}: {each.kind} in {each.function}\n    was {each.was}\n"
                      f"    now {each.now or '(nothing)'}")
            print(f"{len(mutants[:chosen.limit])} mutants")
            return 0
        print(f"{len(mutants)} mutants, seed {chosen.seed}", flush=True)
        is_done = try_all(chosen, mutants, texts, report)
    except (choose.Wrong, equivalent.Faulty, NotBuilt) as error:
        print(f"./dev mutate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # before the first mutant
        print("interrupted")
        return 130
    elapsed = time.monotonic() - started
    print(f"\n{report.text(elapsed)}")
    if chosen.only:
        for each in report.survivors():
            print(f"\nif nobody could notice it, tools/mutate/equivalent.toml takes:\n"
                  f"{equivalent.entry_of(each)}")
    if chosen.json:
        settings = {name: str(value) for name, value in vars(chosen).items()
                    if name != "survived"}
        chosen.json.write_text(report.json(elapsed, settings) + "\n")
    if not is_done:
        print("interrupted")
        return 130
    needed = 100 if chosen.at_least is None else chosen.at_least
    return 0 if report.rate() * 100 >= needed else 1


if __name__ == "__main__":
    sys.exit(main())
