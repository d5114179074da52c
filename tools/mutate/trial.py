"""One mutant: compiled, linked, and run through the tests until one of them fails."""

import dataclasses
import pathlib
import re
import shutil
import threading
import time
import tomllib

import pairs
from mutants import mutants_of
from world import CC_SECONDS_MAX, without_debugging

STAGES = ("own", "unit", "road", "simulation")
HEADER_SOURCES_MAX = 12
SIMULATE = "encore_simulate"
PROXY = "encore"


@dataclasses.dataclass(frozen=True)
class Verdict:
    outcome: str          # killed, survived, invalid (does not compile), same (as compiled)
    stage: str = ""       # that killed it
    test: str = ""
    how: str = ""         # failed or time
    seconds: float = 0
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class Choice:
    """The settings of a run."""
    stages: tuple = STAGES
    requests: int = 40000
    round: int = 2000
    seed: int = 1
    longest: float = 60   # seconds that a test of another folder may take
    grace: float = 20     # seconds that a test may take beyond five times its usual


@dataclasses.dataclass(frozen=True)
class Step:
    """One test of a stage, or some of its cases."""
    stage: str
    test: object = None    # a world.Test; none: the simulation
    cases: tuple = ()      # what chooses them
    is_near: bool = True   # of the mutant's own folder

    @property
    def name(self):
        return self.test.name if self.test else "simulation"


class Known:
    """Values by name; each is measured once. Thread-safe."""

    def __init__(self):
        self.mutex = threading.Lock()
        self.locks = {}
        self.known = {}

    def of(self, name, measure):
        with self.mutex:
            lock = self.locks.setdefault(name, threading.Lock())
        with lock:
            if name not in self.known:
                self.known[name] = measure()
            return self.known[name]


class Trials:
    def __init__(self, world, processes, choice, roads, note):
        self.world = world
        self.processes = processes
        self.choice = choice
        self.roads = roads
        self.note = note
        self.baselines = Known()  # Step -> Result
        self.types = Known()      # file -> pairs of two types
        self.plans = {}      # file -> its Steps
        self.originals = Known()  # source -> its object's bytes

    # The plan

    def unit_tests(self):
        return [test for test in self.world.tests
                if "unit" in test.labels and self.world.program_of(test)]

    def plan(self, file):
        """The Steps of a file, in the order in which they are run."""
        if file not in self.plans:
            self.plans[file] = self._plan(file)
        return self.plans[file]

    def _plan(self, file):
        world = self.world
        sources = world.sources_with(file)
        steps = []
        order = self.choice.stages
        for test in self.unit_tests():
            wanted = [each for each in self.unit_steps(test, file) if each.stage in order]
            if wanted and any(world.has_object(world.program_of(test), each) for each in sources):
                steps += wanted
        by_name = {test.name: test for test in world.tests if "e2e" in test.labels}
        steps += [Step("road", by_name[name]) for name in road_of(self.roads, file) if name in by_name]
        if (world.build / SIMULATE).is_file() and any(world.has_object(SIMULATE, each)
                                                      for each in sources):
            steps.append(Step("simulation"))
        return sorted((each for each in steps if each.stage in order),
                      key=lambda each: (order.index(each.stage), not each.is_near))

    def unit_steps(self, test, file):
        """A unit test, in two where it has cases of this file: those alone, then the others."""
        folder = self.world.root / pathlib.Path(self.world.program_of(test)).parent
        own = own_tests(self.world.root, folder, file)
        is_near = folder.name == pathlib.Path(file).parent.name
        if not own:
            return [Step("unit", test, is_near=is_near)]
        if "--rng-seed" not in test.command:  # not Catch2
            return [Step("own", test, is_near=is_near)]
        # Without the last of them, Catch2 would run hidden cases, too.
        return [Step("own", test, ("-#", ",".join(f"[#{name}]" for name in own)), is_near),
                Step("unit", test, ("-#", "".join(f"~[#{name}]" for name in own) + "~[.]"), is_near)]

    def programs(self, files):
        """All that may be linked or run for these files."""
        found = set()
        for file in files:
            for step in self.plan(file):
                found.add(self.program_of(step))
                if step.test:
                    found.update(filter(None, map(self.inside, step.test.environment.values())))
        return sorted(found)

    def program_of(self, step):
        fixed = {"simulation": SIMULATE, "road": PROXY}
        return fixed.get(step.stage) or self.world.program_of(step.test)

    def inside(self, path):
        path = pathlib.Path(path)
        return str(path.relative_to(self.world.build)) if path.is_relative_to(
            self.world.build) else None

    # How they are run

    def command(self, step, program, room):
        """(command, directory, environment) of a step with this program in the place of its own."""
        test = step.test
        environment = {"TMPDIR": str(room.temporary), "ENCORE_E2E_DEADLINE": "20",
                       "PYTHONDONTWRITEBYTECODE": "1"}
        if step.stage == "simulation":
            return ([str(program), "--seed", str(self.choice.seed), "--requests",
                     str(self.choice.requests), "--round", str(self.choice.round), "--shorten", "0",
                     "--jobs", "1", "--quiet", "1"], room.folder, environment)
        if step.stage == "road":
            for name, value in test.environment.items():
                inside = self.inside(value)
                environment[name] = str(self.world.linked / inside) if inside else value
            environment["ENCORE"] = str(program)
            directory = pathlib.Path(test.directory)
            if directory.is_relative_to(self.world.root):
                directory = self.world.tree / directory.relative_to(self.world.root)
            command = [word for word in test.command if word != "-v"]
            at = command.index("unittest") + 1 if "unittest" in command else len(command)
            return [*command[:at], "--failfast", *command[at:]], directory, environment
        words = ["1" if word == "time" else word for word in (*step.cases, *test.command[1:])]
        if "--rng-seed" in words:
            words.append("--abort")
        return [str(program), *words], room.folder, {**environment, **test.environment}

    def baseline(self, step, room):
        """Returns the result of a step without a mutant."""
        def measure():
            program = self.world.linked / self.program_of(step)
            command, directory, environment = self.command(step, program, room)
            result = self.processes.run(command, cwd=directory, log=room.log, timeout=900,
                                        environment=environment)
            room.clear()
            if result.outcome != "passed":
                self.note(f"{step.name} {result.outcome} without a mutant: it is left out\n"
                          f"{last_lines(result.output)}")
            return result

        return self.baselines.of((step.name, step.cases), measure)

    def try_mutant(self, mutant, text, room):
        started = time.monotonic()
        verdict = self._try(mutant, text, room)
        room.clear()
        return dataclasses.replace(verdict, seconds=time.monotonic() - started)

    def _try(self, mutant, text, room):
        sources = self.world.sources_with(mutant.file)
        if mutant.pair and sources == [mutant.file] \
                and mutant.pair in self.differing_pairs(mutant.file, text, room):
            return Verdict("invalid", detail="two types")
        objects = {}
        same = True
        for source in sources:
            made = room.folder / f"{len(objects)}.o"
            original = self.original(source, room)
            room.overlay_file(mutant.file, mutant.applied(text))
            result = self.compile(source, made, room)
            if result.outcome != "passed":
                return Verdict("invalid", detail=first_error(result.output))
            same = same and without_debugging(made) == original
            objects[self.world.object_of(source)] = made
        if same:
            return Verdict("same")
        programs = {}
        for step in self.plan(mutant.file):
            usual = self.baseline(step, room)
            if usual.outcome != "passed" or self.is_too_long(step, usual):
                continue
            program = self.program_of(step)
            if program not in programs:
                for old in programs.values():
                    old.unlink()
                linked = self.link(program, objects, room)
                if linked is None:
                    return Verdict("invalid", detail=f"{program} does not link")
                programs = {program: linked}
            result = self.run(step, programs[program], usual, room)
            if result.outcome != "passed":
                return Verdict("killed", step.stage, step.name, result.outcome, 0,
                               last_lines(result.output))
        return Verdict("survived")

    def is_too_long(self, step, usual):
        return step.stage == "unit" and not step.is_near and usual.seconds > self.choice.longest

    def run(self, step, program, usual, room):
        command, directory, environment = self.command(step, program, room)
        for _ in range(2 if step.stage == "road" else 1):
            # A test of the road that fails is asked twice: other mutants share its machine.
            result = self.processes.run(command, cwd=directory, log=room.log, environment=environment,
                                        timeout=self.choice.grace + 5 * usual.seconds)
            room.clear()
            if result.outcome != "failed":
                break
        return result

    def differing_pairs(self, file, text, room):
        """Pairs of neighbouring arguments that are of two types."""
        def ask():
            asked = list(dict.fromkeys(each.pair for each in mutants_of(file, text) if each.pair))
            room.overlay_file(file, pairs.with_probes(text, asked))
            command = [*self.world.compile_command(file, room.overlay, room.folder / "none.o"),
                       "-fsyntax-only", "-w", "-Wno-error", "-fmax-errors=0"]
            if "clang" in pathlib.Path(command[0]).name:
                command[-1] = "-ferror-limit=0"
            self.processes.run(command, cwd=self.world.build, log=room.log, timeout=CC_SECONDS_MAX)
            return pairs.differing(asked, room.log.read_text(errors="replace"))

        return self.types.of(file, ask)

    def original(self, source, room):
        """The build's own object of a source, as mutants of it are compared."""
        def read():
            copy = room.folder / "original.o"
            shutil.copy2(self.world.linked / self.world.object_of(source), copy)
            return without_debugging(copy)

        return self.originals.of(source, read)

    def compile(self, source, made, room):
        return self.processes.run(self.world.compile_command(source, room.overlay, made),
                                  cwd=self.world.build, log=room.log, timeout=CC_SECONDS_MAX)

    def link(self, program, objects, room):
        made = room.folder / pathlib.Path(program).name
        result = self.processes.run(self.world.link_command(program, made, objects),
                                    cwd=self.world.linked, log=room.log, timeout=CC_SECONDS_MAX)
        return made if result.outcome == "passed" else None


class Room:
    """The folders of one of several workers."""

    def __init__(self, folder, temporary):
        self.folder = folder
        self.overlay = folder / "overlay"
        self.temporary = temporary
        self.log = folder / "log"
        self.overlay.mkdir(parents=True)
        self.temporary.mkdir(parents=True)

    def overlay_file(self, file, text):
        """The overlay has this file alone, or nothing."""
        shutil.rmtree(self.overlay)
        self.overlay.mkdir()
        if file:
            path = self.overlay / file
            path.parent.mkdir(parents=True)
            path.write_text(text)

    def clear(self):
        """Removes what a test has left."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir(parents=True, exist_ok=True)


def own_tests(root, folder, file):
    """The names of the test sources in a folder that include a file, or bear its name. The first include of
    a source is its header."""
    path = pathlib.Path(file)
    header = file
    if path.suffix == ".cc":
        first = re.search(r'^#include "(\S+)"', (root / file).read_text(), re.M)
        header = first[1] if first else str(path.with_suffix(".h"))
    near = folder.name == path.parent.name
    return [each.stem for each in sorted(folder.glob("*_test.cc"))
            if (near and each.stem == f"{path.stem}_test")
            or f'#include "{header}"' in each.read_text()]


def road_of(roads, file):
    """The end-to-end programs of the longest folder that a file's path begins with."""
    fitting = [folder for folder in roads if file == folder or file.startswith(folder)]
    return roads[max(fitting, key=len)] if fitting else []


def read_roads(path):
    return tomllib.loads(path.read_text())["roads"]


def first_error(output):
    lines = [line for line in output.splitlines() if "error:" in line]
    return lines[0].split("error:", 1)[1].strip() if lines else ""


def last_lines(output):
    lines = [line for line in output.splitlines() if line.strip() and set(line) - set("=-.~")]
    return "\n".join(lines[-12:])
