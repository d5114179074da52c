"""The workloads of `claim`: traces that encore-sim drives, each with a sentence that describes it."""

import collections
import gzip
import json
import lzma
import pathlib
import subprocess

from measure import Problem
from peers import pinned

SYNTHETIC_REQUESTS = 300_000
SIZES = "lognormal:10KiB:1.5:8MiB"
SHARE = 0.1  # part of the objects of a trace without sizes that fit the cache
WIDTHS = {"int32": 4, "int64": 8}  # bytes of a request, in traces that can be cut
# The traces that are known by name: file and number of requests, 0: all.
TRACES = {"web07": ("web07.trace.xz", 0), "orm-night": ("orm-night.trace.xz", 500_000)}
NAMES = ("synthetic", *TRACES)

# `arguments`: of encore-sim, in addition to the file.
Workload = collections.namedtuple("Workload", "name text file arguments requests bytes_mean")


class Simulator:
    """encore-sim, whose reports are JSON. `progress`: its bar goes to our standard error."""

    def __init__(self, programs, progress=False):
        self.program, self.progress = pathlib.Path(programs) / "encore-sim", progress
        if not self.program.exists():
            raise Problem(f"{self.program} is not built; ./dev bench --claim builds what is needed")

    def run(self, *arguments, seconds=600):
        ended = subprocess.run(
            [self.program, *map(str, arguments), "--json"], text=True, timeout=seconds, check=False,
            stdout=subprocess.PIPE, stderr=None if self.progress else subprocess.PIPE,
            preexec_fn=pinned(None))
        # 1: a check failed, which the report tells of.
        if ended.returncode not in (0, 1) or not ended.stdout.startswith("{"):
            raise Problem(f"encore-sim {arguments[0]}: {(ended.stderr or 'failed').strip()[-300:]}")
        return json.loads(ended.stdout)


def described(name, row, file, arguments, bytes_unique, source=""):
    text = (f"{source}{row['requests']:,} requests for {row['objects']:,} objects, "
            f"{100 * row['one_hit_objects_share']:.0f} % of them requested once, "
            f"{bytes_unique / (1 << 30):.2f} GiB in all, mean "
            f"{bytes_unique / row['objects'] / 1024:.1f} KiB")
    return Workload(name, text, file, arguments, row["requests"], bytes_unique / row["objects"])


def cut_lines(file, requests):
    """Keeps the head and the first `requests` lines of a csv file."""
    with open(file, encoding="ascii") as source:
        lines = [line for line, _ in zip(source, range(requests + 1))]
    file.write_text("".join(lines), encoding="ascii")


def synthetic(simulator, requests, directory):
    file = directory / "synthetic.csv"
    simulator.run("generate", "akamai", "-o", file, "--requests", SYNTHETIC_REQUESTS, "--size",
                  SIZES, "--one-hit-share", 0.75, "--seed", 1)
    if requests:
        cut_lines(file, requests)
    row = simulator.run("stats", file)["rows"][0]
    return described("synthetic", row, file, [], row["bytes_unique"])


def cut(file, form, requests, directory):
    """A trace of the first `requests` requests; the whole where it cannot be cut."""
    opened = {".xz": lzma.open, ".gz": gzip.open}.get(file.suffix)
    if form not in WIDTHS or not opened or not requests:
        return file
    shorter = directory / f"{file.name}.first"
    with opened(file) as source:
        shorter.write_bytes(source.read(requests * WIDTHS[form]))
    return shorter


def real(simulator, name, file, requests, cache_bytes, directory):
    """The workload of a trace file. If it has no sizes, all objects have one, such that the cache
    has room for a tenth of them."""
    report = simulator.run("stats", file)
    form = report["trace"][0]["format"]
    shorter = cut(file, form, requests, directory)
    arguments = ["--format", form]
    row = simulator.run("stats", shorter, *arguments)["rows"][0]
    total = row["bytes_unique"]
    if total is None:
        each = int(cache_bytes / SHARE / row["objects"])
        arguments += ["--default-size", each]
        total = each * row["objects"]
    first = row["requests"] < report["rows"][0]["requests"]
    source = f"{file.name}{', the first' if first else ''}: "
    return described(name, row, shorter, arguments, total, source)


def fewer(requests, requests_max):
    """The smaller of two numbers of requests, of which 0 means all."""
    return min(n for n in (requests, requests_max) if n) if requests or requests_max else 0


def made(simulator, name, requests_max, cache_bytes, traces, directory):
    """The Workload of a name or a path, or a sentence that says why there is none."""
    if name == "synthetic":
        return synthetic(simulator, requests_max, directory)
    file, requests = TRACES.get(name, (name, 0))
    file = pathlib.Path(traces) / file if name in TRACES else pathlib.Path(file)
    if not file.is_file():
        return f"{name} is left out: there is no {file}" + (
            "; --traces names its directory" if name in TRACES else "")
    return real(simulator, file.name.partition(".")[0] if name not in TRACES else name, file,
                fewer(requests, requests_max), cache_bytes, directory)
