"""One mutant: compiled, linked, and run through the tests until one of them fails."""

import dataclasses
import pathlib
import shutil
import threading
import time
import tomllib

from processes import Stopped
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
    """What is run."""
    stages: tuple = STAGES
    requests: int = 40000
    round: int = 2000
    seed: int = 1
    longest: float = 60   # seconds that a test of another folder may take
    grace: float = 20     # seconds that a test may take beyond five times its usual


class Baselines:
    """What each test does without a mutant. Thread-safe; each is measured once."""

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
        self.baselines = Baselines()
        self.unmutated = {}  # source -> its object's bytes
        self.mutex = threading.Lock()

    # Which tests

    def unit_tests(self):
        return [test for test in self.world.tests
                if "unit" in test.labels and self.world.program_of(test)]

    def plan(self, file):
        """(stage, test) of a file, in the order in which they are run; test None: the simulation."""
        world = self.world
        sources = world.sources_with(file)
        linked = [test for test in self.unit_tests()
                  if any(world.has_object(world.program_of(test), each) for each in sources)]
        own = [test for test in linked if self.is_own(test, file)]
        plan = [("own", test) for test in own]
        plan += [("unit", test) for test in linked if test not in own]
        by_name = {test.name: test for test in world.tests if "e2e" in test.labels}
        plan += [("road", by_name[name]) for name in road_of(self.roads, file) if name in by_name]
        if (world.build / SIMULATE).is_file() and any(world.has_object(SIMULATE, each)
                                                      for each in sources):
            plan.append(("simulation", None))
        order = self.choice.stages
        return sorted((each for each in plan if each[0] in order), key=lambda each: order.index(each[0]))

    def is_own(self, test, file):
        """Whether a test is of the file's folder, or includes it."""
        folder = self.world.root / pathlib.Path(self.world.program_of(test)).parent
        if folder.name == pathlib.Path(file).parent.name:
            return True
        line = f'#include "{pathlib.Path(file).with_suffix(".h")}"'
        return any(line in path.read_text() for path in folder.glob("*.cc"))

    def programs(self, files):
        """All that may be linked or run for these files."""
        found = set()
        for file in files:
            for stage, test in self.plan(file):
                if stage == "simulation":
                    found.add(SIMULATE)
                elif stage == "road":
                    found.update(name for name in (PROXY, *map(self.inside, test.environment.values()))
                                 if name)
                else:
                    found.add(self.world.program_of(test))
        return sorted(found)

    def inside(self, path):
        path = pathlib.Path(path)
        return str(path.relative_to(self.world.build)) if path.is_relative_to(
            self.world.build) else None

    # How they are run

    def command(self, stage, test, program, room):
        """(command, directory, environment) of a test with this program in the place of its own."""
        environment = {"TMPDIR": str(room.temporary), "ENCORE_E2E_DEADLINE": "20",
                       "PYTHONDONTWRITEBYTECODE": "1"}
        if stage == "simulation":
            return ([str(program), "--seed", str(self.choice.seed), "--requests",
                     str(self.choice.requests), "--round", str(self.choice.round), "--shorten", "0",
                     "--jobs", "1", "--quiet", "1"], room.folder, environment)
        if stage == "road":
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
        words = ["1" if word == "time" else word for word in test.command[1:]]
        if "--rng-seed" in words:
            words.append("--abort")
        return [str(program), *words], room.folder, {**environment, **test.environment}

    def baseline(self, stage, test, room):
        name = test.name if test else "simulation"
        program = {"simulation": SIMULATE, "road": PROXY}.get(stage) or self.world.program_of(test)

        def measure():
            command, directory, environment = self.command(stage, test, self.world.linked / program, room)
            result = self.processes.run(command, cwd=directory, log=room.log, timeout=900,
                                        environment=environment)
            room.clear()
            if result.outcome != "passed":
                self.note(f"{name} {result.outcome} without a mutant: it is left out")
            return result

        return name, program, self.baselines.of(name, measure)

    def try_mutant(self, mutant, text, room):
        started = time.monotonic()
        verdict = self._try(mutant, text, room)
        room.clear()
        return dataclasses.replace(verdict, seconds=time.monotonic() - started)

    def _try(self, mutant, text, room):
        sources = self.world.sources_with(mutant.file)
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
        for stage, test in self.plan(mutant.file):
            name, program, usual = self.baseline(stage, test, room)
            if usual.outcome != "passed":
                continue
            if stage == "unit" and usual.seconds > self.choice.longest:
                continue
            if program not in programs:
                linked = self.link(program, objects, room)
                if linked is None:
                    return Verdict("invalid", detail=f"{program} does not link")
                programs[program] = linked
            command, directory, environment = self.command(stage, test, programs[program], room)
            for _ in range(2 if stage == "road" else 1):
                # A test of the road that fails is asked twice: other mutants share its machine.
                result = self.processes.run(
                    command, cwd=directory, log=room.log, environment=environment,
                    timeout=self.choice.grace + 5 * usual.seconds)
                if result.outcome != "failed":
                    break
            if result.outcome != "passed":
                return Verdict("killed", stage, name, result.outcome, 0, last_lines(result.output))
            if stage in ("own", "unit"):
                programs.pop(program).unlink()
        return Verdict("survived")

    def original(self, source, room):
        with self.mutex:
            known = self.unmutated.get(source)
        if known is None:
            room.overlay_file(None, "")
            made = room.folder / "original.o"
            result = self.compile(source, made, room)
            if result.outcome != "passed":
                raise RuntimeError(f"{source} does not compile without a mutant:\n{result.output}")
            known = without_debugging(made)
            with self.mutex:
                self.unmutated[source] = known
        return known

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
