"""The laboratory of Encore: traces, caches, Bloom filters and their theory, with NumPy arrays.

    import encore_sim as lab
    trace = lab.open_trace("access.log.gz")
    report = lab.replay(trace, eviction=["lru", "sieve"], cache_size=["1%", "10%"], admission="always")
    for row in report["rows"]:
        print(row["eviction"], row["cache_bytes"], row["object_hit_ratio"])

`replay`, `stats` and `run` are the commands of the program encore-sim: the same code, the same names of
options (`cache_size` is --cache-size; lists join by commas), the same keys in the report. Errors are
ValueErrors with the program's message. They release the interpreter's lock while they work, and end at
Ctrl-C with KeyboardInterrupt.
"""

import re

import numpy as np

from . import _core, theory
from ._core import __version__
from .filters import BloomFilter, RotatingBloomFilter
from .policy import Policy

__all__ = ["BloomFilter", "NO_TTL", "Policy", "Report", "RotatingBloomFilter", "Trace", "admission_policies",
           "array_trace", "arrays", "batches", "eviction_policies", "open_trace", "replay", "run", "stats",
           "theory", "trace_formats"]

Trace = _core.Trace
NO_TTL = 0xffffffff
# The options of `open_trace`; the others are the command's.
OF_THE_TRACE = ("format", "columns", "delimiter", "methods", "statuses", "all_lines", "key_prefix",
                "default_size", "bad_max")


def _text(value):
    if isinstance(value, dict):
        return ",".join(f"{name}={_text(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple, np.ndarray)):
        return ",".join(map(_text, value))
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def _words(options):
    """The command line's words for options; True is a flag, None and False are left out."""
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            words.append(f"{option}={_text(value)}")
    return words


def eviction_policies():
    """Names for `eviction`."""
    return _core.eviction_policies()


def admission_policies():
    """Names for `admission`."""
    return _core.admission_policies()


def trace_formats():
    """Names for `format`; "auto", the default, recognises the format."""
    return _core.trace_formats()


# --- traces -----------------------------------------------------------------------------------------

def open_trace(*files, **options):
    """A trace in files, one after the other, of any format that encore-sim reads, compressed or not.

    Options are those of encore-sim: format, columns={"time": 1, "key": "url"}, delimiter, methods,
    statuses, all_lines, key_prefix, default_size, bad_max. Each use reads the files anew.
    """
    unknown = [name for name in options if name not in OF_THE_TRACE]
    if unknown:
        raise ValueError(f"{unknown[0]}, accepted: {', '.join(OF_THE_TRACE)}")
    if not files:
        raise ValueError("no file, accepted: one or more")
    return _core.open_files([str(file) for file in files], _words(options))


def _integers(given, name, dtype, least=0):
    """An array of the type, which is not copied if it has it already; None: `given` is one number."""
    array = np.asarray(given)
    if array.dtype.kind not in "ui":
        raise ValueError(f"{name} of type {array.dtype}, accepted: whole numbers")
    most = np.iinfo(dtype).max
    if array.size and (int(array.min()) < least or int(array.max()) > most):
        raise ValueError(f"{name} from {array.min()} to {array.max()}, accepted: {least} to {most}")
    return int(array) if array.ndim == 0 else array.astype(dtype, copy=False)


def _keys(key):
    """An array of numbers or of hashes, or a list of bytes."""
    if not isinstance(key, np.ndarray) or key.dtype.kind in "SUO":
        keys = [one.encode() if isinstance(one, str) else one for one in key]
        if keys and isinstance(keys[0], bytes):
            wrong = next((one for one in keys if not isinstance(one, bytes)), None)
            if wrong is not None:
                raise ValueError(f"the key {wrong!r}, accepted: bytes or str, as the first one")
            return keys
        key = np.asarray(keys) if keys else np.empty(0, np.uint64)
    array = _integers(key, "key", np.uint64)
    if isinstance(array, int) or array.ndim > 2 or (array.ndim == 2 and array.shape[1] != 2):
        raise ValueError(f"key of shape {np.shape(key)}, accepted: (n,) numbers, or (n, 2) hashes")
    return np.ascontiguousarray(array) if array.ndim == 2 and array.strides[1] != 8 else array


def array_trace(key, size=1024, time_ns=0, ttl=NO_TTL):
    """A trace in arrays with a number for each request; `size`, `time_ns` and `ttl` may be one number.

    `key`: numbers, strings or bytes, or the two-dimensional hashes that `batches` gives. `ttl`: seconds,
    NO_TTL for ever. Arrays of uint64 (key, size), int64 (time_ns) and uint32 (ttl) are not copied, and
    must not change while the trace is used.
    """
    return _core.of_arrays(_keys(key), _integers(size, "size", np.uint64),
                           _integers(time_ns, "time_ns", np.int64, -2**63), _integers(ttl, "ttl", np.uint32))


def batches(trace, requests=65536, seed=1):
    """Reads the trace once: an iterator of dicts of arrays, at most so many requests each.

    "key" has two columns, the 128 bits of the key's hash under `seed`; "time_ns", "size", "ttl". The
    arrays are views of one block of memory. `counts()` of the iterator: lines read, skipped, bad.
    """
    return _core.batches(trace, requests, seed)


def arrays(trace, seed=1):
    """All requests of the trace, as one dict of arrays (see `batches`)."""
    parts = list(batches(trace, 1 << 18, seed))
    if not parts:
        raise ValueError("the trace has no counted request")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


# --- commands ---------------------------------------------------------------------------------------

class Report(dict):
    """The report of a command, with the keys of encore-sim's JSON; "rows" is the main table."""

    def columns(self, table="rows"):
        """The table as a dict of arrays, one for each key; None becomes nan among numbers."""
        rows = self[table]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values):
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values) and all(isinstance(value, (int, float)) for value in numbers):
        return np.array([np.nan if value is None else float(value) for value in values])
    if len(numbers) < len(values) or any(isinstance(value, list) for value in values):
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return column
    return np.array(values)


def run(command, trace=None, **options):
    """Runs a command of encore-sim ("theory fill", "tune") and returns its Report.

    A command that writes files writes them: html="page.html", svg=..., json=....
    """
    return _run(command, trace, options)


def _run(command, trace, options, policy=None):
    words = command.split() + _words(options)
    try:
        return Report(_core.call(words, trace, policy))
    except ValueError as error:
        # Lines after the first say how the program is used.
        raise ValueError(re.sub("^encore-sim: ", "", str(error))) from None


def stats(trace, **options):
    """Objects, sizes, reuse and popularity of a trace: `encore-sim stats`."""
    return run("stats", trace, **options)


def replay(trace, eviction="sieve", cache_size="10%", admission="always", **options):
    """Replays the trace through caches: `encore-sim replay`, with all of its options.

    `cache_size`: bytes, "64MiB" or a share of the footprint, "10%". `eviction` and `admission`: names
    (`eviction_policies`, `admission_policies`). `eviction` may be, or list, subclasses of Policy, or other
    callables: called with the capacity in bytes for each cache, they return its policy. These decide on
    admission themselves, so `admission` is "always" for them.
    """
    options = {"cache_size": cache_size, "admission": admission, **options}
    listed = list(eviction) if isinstance(eviction, (list, tuple)) else [eviction]
    if not any(map(callable, listed)):
        return _run("replay", trace, {"eviction": listed, **options})
    reports = [_run_own(trace, one, options) if callable(one) else
               _run("replay", trace, {"eviction": one, **options}) for one in listed]
    whole = reports[0]
    for report in reports[1:]:
        for table in ("rows", "intervals"):
            if table in whole:
                whole[table] += report[table]
    whole["parameters"]["eviction"] = ",".join(map(_name, listed))
    return whole


def _name(policy):
    return getattr(policy, "__name__", type(policy).__name__) if callable(policy) else policy


def _run_own(trace, policy, options):
    drawn = [name for name in ("html", "svg", "png", "json") if options.get(name)]
    if drawn:
        raise ValueError(f"{drawn[0]} with a policy of your own, accepted: encore_sim.plots")
    if options["admission"] != "always":
        raise ValueError(f"admission {_text(options['admission'])} with a policy of your own, accepted: always; "
                         "the policy's method admit() may refuse objects")
    # The name stands for none of the built-in policies; fifo has no shortcuts (stack distances, a future).
    report = _run("replay", trace, {"eviction": "fifo", **options}, policy)
    for table in ("rows", "intervals"):
        for row in report.get(table, ()):
            row["eviction"] = _name(policy)
    return report
