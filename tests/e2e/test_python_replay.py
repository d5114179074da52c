"""Replays by the Python module: the rows of `encore-sim replay --json`, exactly; policies written in Python; the
interpreter's lock and Ctrl-C."""

import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

from harness import DEADLINE, clean_environment
from laboratory import LaboratoryCase, lab, np

DATA = pathlib.Path(__file__).parent / "data"
TRACES = [DATA / "nasa-19950801.tsv.xz", DATA / "web07-50000.trace.xz"]
Base = lab.Policy if lab else object


class Lru(Base):
    """As naive as it can be."""

    def __init__(self, capacity):
        self.order = collections.OrderedDict()

    def hit(self, object, size, time_ns):
        self.order.move_to_end(object)

    def insert(self, object, size, time_ns):
        self.order[object] = size

    def evict(self):
        return self.order.popitem(last=False)[0]

    def remove(self, object):
        del self.order[object]


class Failing(Lru):
    def hit(self, object, size, time_ns):
        raise LookupError("on purpose")


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


class Replays(LaboratoryCase):
    def rows(self, trace, **options):
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        return json.loads(self.sim("replay", trace, *words, "--json"))["rows"]

    def test_rows_are_those_of_the_program(self):
        options = {"eviction": "lru,sieve,s3-fifo,lirs,random,belady", "cache_size": "1MiB,10%",
                   "admission": "always,second-hit,tinylfu,adaptsize", "capacity": "2000,5000", "fpr": "0.01,0.2"}
        for trace in TRACES:
            with self.subTest(trace.name):
                theirs = self.rows(trace, **options)
                ours = lab.replay(lab.open_trace(trace), **options)["rows"]
                self.assertEqual(theirs, ours)
                self.assertEqual(6 * 2 * (1 + 4 + 2 + 2), len(ours))
                self.assertGreater(len({row["hits"] for row in ours}), 20)

    def test_other_tables_are_those_of_the_program(self):
        trace = TRACES[1]
        ours = lab.replay(lab.open_trace(trace), eviction=["lru"], cache_size=[100000], interval=10000, warmup="10%",
                          bounds=True)
        theirs = json.loads(self.sim("replay", trace, "--eviction=lru", "--cache-size=100000", "--admission=always",
                                     "--interval=10000", "--warmup=10%", "--bounds", "--json"))
        for table in ("rows", "intervals", "bounds", "parameters", "notes"):
            self.assertEqual(theirs[table], ours[table], table)
        self.assertEqual(5, len(ours["intervals"]))
        curve = lab.replay(lab.open_trace(trace), eviction=["lru", "sieve"], cache_size=None, mrc=5)
        self.assertEqual(10, len(curve.columns()["object_miss_ratio"]))

    def test_a_trace_in_arrays_is_that_of_a_file(self):
        path = self.directory / "trace.csv"
        self.sim("generate", "zipf", "-o", path, "--requests", "30000", "--size", "lognormal:4KiB:1", "--ttl", "2")
        lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
        size, ttl = (np.array([int(line[column]) for line in lines]) for column in (2, 3))
        time_ns = np.array([round(float(line[0]) * 1e9) for line in lines])
        texts = lab.array_trace([line[1] for line in lines], size=size, time_ns=time_ns, ttl=ttl)
        options = {"eviction": "lru,lhd", "cache_size": "1MiB,5%", "admission": "always,second-hit", "fpr": 0.2}
        names = "trace"
        expected = [without(row, names) for row in lab.replay(lab.open_trace(path), **options)["rows"]]
        self.assertGreater(expected[0]["validations"], 100)
        self.assertEqual(expected, [without(row, names) for row in lab.replay(texts, **options)["rows"]])
        # And again from the hashes of the requests.
        read = lab.arrays(lab.open_trace(path))
        again = lab.array_trace(read["key"], size=read["size"], time_ns=read["time_ns"], ttl=read["ttl"])
        self.assertEqual(expected, [without(row, names) for row in lab.replay(again, **options)["rows"]])
        self.assertEqual(lab.stats(lab.open_trace(path))["rows"][0]["objects"], lab.stats(texts)["rows"][0]["objects"])

    def test_numbers_are_keys_as_in_binary_traces(self):
        path = self.directory / "trace.enc"
        self.sim("generate", "zipf", "-o", path, "--requests", "20000", "--size", "1KiB")
        records = np.frombuffer(path.read_bytes()[8:], dtype=np.uint64).reshape(-1, 4)
        # Columns of records, each 32 bytes from the next: read where they are.
        trace = lab.array_trace(records[:, 0], size=records[:, 1], time_ns=records[:, 2].view(np.int64))
        options = {"eviction": "random", "cache_size": "64KiB", "admission": "second-hit", "fpr": 0.3}
        theirs, ours = (lab.replay(one, **options)["rows"] for one in (lab.open_trace(path), trace))
        self.assertEqual([without(row, "trace") for row in theirs], [without(row, "trace") for row in ours])

    def test_nothing_is_copied(self):
        size = np.full(1000, 10, dtype=np.uint64)
        trace = lab.array_trace(np.arange(1000, dtype=np.uint64) % 50, size=size)
        self.assertEqual(500, lab.stats(trace)["rows"][0]["bytes_unique"])
        size[:] = 20
        self.assertEqual(1000, lab.stats(trace)["rows"][0]["bytes_unique"])
        batch = next(lab.batches(trace, 300))
        self.assertEqual({300}, {len(column) for column in batch.values()})
        self.assertIs(batch["size"].base, batch["key"].base)

    def test_a_page_says_how_to_repeat_it_if_words_can(self):
        page = self.directory / "page.html"
        for trace, repeats in (lab.open_trace(TRACES[1]), True), (lab.array_trace(np.arange(9)), False):
            try:
                lab.replay(trace, cache_size=1000, html=page)
            except ValueError as error:
                self.skipTest(str(error))  # built without Chart.js
            self.assertEqual(repeats, "sha256sum -c" in page.read_text())
            self.assertEqual(not repeats, "only that program can repeat" in page.read_text())
        self.refused("html with a policy of your own", lab.replay, trace, eviction=Lru, html=page)

    def test_batches_are_the_whole_trace(self):
        whole = lab.arrays(lab.open_trace(TRACES[0]))
        reader = lab.batches(lab.open_trace(TRACES[0]), 1000)
        parts = list(reader)
        self.assertEqual([1000] * (len(parts) - 1), [len(part["size"]) for part in parts[:-1]])
        for name, column in whole.items():
            np.testing.assert_array_equal(column, np.concatenate([part[name] for part in parts]))
        self.assertEqual(len(whole["size"]), reader.counts()["counted"])
        self.assertEqual(["tsv"], [source["format"] for source in reader.counts()["sources"]])
        other = lab.arrays(lab.open_trace(TRACES[0]), seed=2)
        self.assertEqual(len(np.unique(whole["key"], axis=0)), len(np.unique(other["key"], axis=0)))
        self.assertFalse((whole["key"] == other["key"]).any())

    def test_errors_are_those_of_the_program(self):
        trace = lab.array_trace(np.arange(10))
        self.refused('unknown eviction policy "lr", did you mean "lru"\\? Accepted: sieve lru', lab.replay, trace, eviction="lr")
        self.refused('--cache-size "0%", accepted', lab.replay, trace, cache_size="0%")
        self.refused("unknown option .*--evictoin", lab.replay, trace, evictoin="lru")
        self.refused("cannot open /nonexistent", lab.replay, lab.open_trace("/nonexistent"))
        self.refused('unknown trace format "x", accepted: auto, encore', lab.open_trace, "a", format="x")
        self.refused("colums, accepted: format, columns", lab.open_trace, "a", colums={})
        self.refused("a trace of no requests", lab.array_trace, np.array([], dtype=np.uint64))
        self.refused("size has other than one number for each of 2 keys", lab.array_trace, [1, 2], size=[1])
        self.refused("size of type float64, accepted: whole numbers", lab.array_trace, [1], size=[1.5])
        self.refused("key from -1 to 1, accepted: 0 to", lab.array_trace, [-1, 1])
        self.refused("key of type object, accepted: whole numbers", lab.array_trace, [2**64])
        self.refused("key of type float64", lab.array_trace, [1.5])
        self.refused(r"key of shape \(1, 3\), accepted", lab.array_trace, [[1, 2, 3]])
        self.refused("the key 7, accepted: bytes or str", lab.array_trace, ["a", 7])
        self.refused(r"size\[1\] = 2251799813685248, accepted: 0 to 2\^50", lab.array_trace, [1, 2], size=[1, 2**51])
        self.refused("batches of 0 requests", lab.batches, trace, 0)

    def test_a_report_has_columns(self):
        report = lab.replay(lab.array_trace(np.arange(100) % 7), eviction=["lru", "fifo"], cache_size=[2048, 4096],
                            admission=["always", "second-hit"])
        columns = report.columns()
        self.assertEqual(8, len(columns["hits"]))
        self.assertEqual(np.float64, columns["fpr_goal"].dtype)
        self.assertEqual(4, np.isnan(columns["fpr_goal"]).sum())
        self.assertEqual({"lru", "fifo"}, set(columns["eviction"]))


class OwnPolicies(LaboratoryCase):
    def test_lru_in_python_is_the_built_in_one(self):
        timed = self.directory / "timed.csv"
        self.sim("generate", "zipf", "-o", timed, "--requests", "20000", "--size", "pareto:100:1.2:64KiB", "--ttl", "9")
        for path in (*TRACES, timed):
            with self.subTest(path.name):
                trace = lab.open_trace(path)
                options = {"cache_size": ["300KiB", "5%"], "interval": 5000, "warmup": 1000}
                report = lab.replay(trace, eviction=["lru", Lru], **options)
                for table in ("rows", "intervals"):
                    rows = report[table]
                    names = ("eviction", "run")
                    half = len(rows) // 2
                    self.assertEqual([without(row, *names) for row in rows[:half]],
                                     [without(row, *names) for row in rows[half:]])
                    self.assertEqual(["lru"] * half + ["Lru"] * half, [row["eviction"] for row in rows])
                self.assertGreater(report["rows"][0]["evictions"], 100)

    def test_a_policy_is_asked_for_admission_and_knows_sizes(self):
        class Small(Lru):
            def admit(self, object, size, time_ns):
                return size <= 50

        key = np.arange(3000) % 100
        trace = lab.array_trace(key, size=key + 1, time_ns=np.arange(3000))
        row = lab.replay(trace, eviction=Small, cache_size=10**6)["rows"][0]
        self.assertEqual((50, 50 * 29), (row["objects_written"], row["hits"]))

    def test_errors_of_a_policy_end_the_replay(self):
        class Wrong(Lru):
            def evict(self):
                return "seven"

        class Gone(Lru):
            def evict(self):
                return 10**6

        trace = lab.array_trace(np.arange(1000) % 100)
        with self.assertRaisesRegex(LookupError, "on purpose"):
            lab.replay(trace, eviction=Failing, cache_size=["100KiB", "20KiB", "10%"])
        self.refused(r"Wrong.evict\(\) returned 'seven', accepted: the number of an object", lab.replay, trace,
                     eviction=Wrong, cache_size=10000)
        self.refused(r"Gone.evict\(\) returned 1000000", lab.replay, trace, eviction=Gone, cache_size=10000)
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            lab.replay(trace, eviction=lambda capacity: 1 // 0)
        with self.assertRaises(AttributeError):
            lab.replay(trace, eviction=lambda capacity: None)
        with self.assertRaises(NotImplementedError):
            lab.replay(trace, eviction=lab.Policy, cache_size=10000)
        self.refused("admission second-hit with a policy of your own, accepted: always", lab.replay, trace,
                     eviction=Lru, admission="second-hit")


class Locks(LaboratoryCase):
    def setUp(self):
        super().setUp()
        self.pipe = self.directory / "pipe"
        os.mkfifo(self.pipe)

    def test_other_threads_run_meanwhile(self):
        """The replay waits for what this thread writes, which it could not with the lock."""
        for eviction in ("lru", Lru):
            reports = []
            replay = threading.Thread(target=lambda: reports.append(lab.replay(
                lab.open_trace(self.pipe, format="csv"), eviction=eviction, cache_size=4096)), daemon=True)
            replay.start()
            with open(self.pipe, "w") as pipe:
                pipe.write("time,key,size\n" + "".join(f"{i},{i % 7},100\n" for i in range(1000)))
            replay.join(DEADLINE)
            self.assertFalse(replay.is_alive())
            self.assertEqual([993], [row["hits"] for row in reports[0]["rows"]])

    def test_control_c_ends_a_replay(self):
        program = ("import encore_sim\n"
                   "try:\n"
                   "    encore_sim.replay(encore_sim.open_trace('pipe', format='csv'), cache_size=4096)\n"
                   "except KeyboardInterrupt:\n"
                   "    print('interrupted')\n")
        # A shell in the background ignores the signal, and so would what it starts.
        child = subprocess.Popen([sys.executable, "-B", "-c", program], cwd=self.directory, stdout=subprocess.PIPE,
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                                 env=clean_environment(PYTHONPATH=os.environ["ENCORE_PYTHON"]))
        self.addCleanup(child.kill)
        with open(self.pipe, "w") as pipe:  # the child has opened it: it is within the replay
            pipe.write("time,key,size\n1,a,100\n")
            pipe.flush()
            child.send_signal(signal.SIGINT)
            self.assertEqual(b"interrupted\n", child.communicate(timeout=DEADLINE)[0])
        self.assertEqual(0, child.returncode)


if __name__ == "__main__":
    unittest.main()
