"""The JSON of encore-sim's commands is what docs/encore-sim.schema.json says, by a validator of JSON Schema."""

import json
import pathlib
import subprocess
import unittest

from harness import Case, clean_environment, need_simulator, sanitized

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "docs" / "encore-sim.schema.json"
# The distribution's, for which its packages are.
PYTHON = "/usr/bin/python3"
VALIDATE = """
import json, sys
from jsonschema import Draft202012Validator
schema = json.load(open(sys.argv[1]))
Draft202012Validator.check_schema(schema)
report = Draft202012Validator(schema)
line = Draft202012Validator({**schema, **schema["$defs"]["line"]})
for text in sys.stdin:
    kind, name, document = json.loads(text)
    for error in (report if kind == "report" else line).iter_errors(document):
        print(name, list(error.absolute_path), error.message[:200])
"""
SWEEP = """traces = ["t.csv"]
[fixed]
warmup = "5%"
[sweep]
eviction = ["lru", "sieve"]
admission = ["always", "second-hit"]
seed = { from = 1, to = 2 }
cache-size = ["1%", "5%"]
"""
COMMANDS = [
    "blocks --events 3000 --hashes 1..3", "blocks --events 3000 --seeds 3 --filter pair --capacity 300",
    "blocks --events 3000 --compare=structures", "blocks --events 3000 --compare=hashes",
    "theory fill", "theory size", "theory capacity", "theory pair", "theory ring", "theory table",
    "theory layouts", "theory kinds", "theory scalable", "theory counting", "theory union",
    "generate akamai --requests 5000 --size lognormal:10KiB:1 -o t.csv", "stats t.csv",
    "convert t.csv --as oracle-general -o t.bin",
    "replay t.csv --eviction lru,belady --admission always,second-hit,nth-hit,tinylfu,adaptsize",
    "replay t.csv --interval 1000", "replay t.csv --parts 4", "replay t.csv --sample 0.5",
    "replay t.csv --mrc 3 --sample 0.5", "replay t.csv --bounds", "replay t.csv --disk-size 64MiB",
    "replay t.csv --disk-size 64MiB --admission probation,proxy-probation --window 0.5,samples",
    "replay t.csv --nodes 3 --tier two --parents 2 --memory hint --admission always,second-hit,nth-hit",
    "replay t.csv --nodes 3 --balance bounded --fail-node 0.5 --parts 4 --admission tinylfu,adaptsize",
    "sweep s.toml", "sweep s.toml --list",
    "compare s.results/results.jsonl:eviction=lru s.results/results.jsonl:eviction=sieve",
    "tune t.csv", "tune t.csv --disk-size 64MiB", "drive t.csv --config seeded.toml",
]


class Json(Case):
    def setUp(self):
        super().setUp()
        self.program = need_simulator()
        if sanitized():
            self.skipTest("what is printed is the same in every build")
        if subprocess.run([PYTHON, "-c", "import jsonschema"], capture_output=True, check=False).returncode:
            self.skipTest("python3-jsonschema is not installed")
        (self.directory / "s.toml").write_text(SWEEP)
        (self.directory / "seeded.toml").write_text('[admission]\nseed = "01"\n')

    def report(self, command):
        ran = subprocess.run([self.program, *command.split(), "--json"], cwd=self.directory,
                             env=clean_environment(), capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(0, ran.returncode, f"{command}: {ran.stderr}")
        return json.loads(ran.stdout)

    def faults(self, documents):
        text = "".join(json.dumps(each) + "\n" for each in documents)
        return subprocess.run([PYTHON, "-c", VALIDATE, str(SCHEMA)], input=text, capture_output=True,
                              text=True, timeout=120, check=True).stdout.splitlines()

    def test_every_report_and_every_line_of_results_is_valid(self):
        documents = [("report", command, self.report(command)) for command in COMMANDS]
        lines = (self.directory / "s.results" / "results.jsonl").read_text().splitlines()
        self.assertEqual(16, len(lines))
        documents += [("line", "results.jsonl", json.loads(line)) for line in lines]
        self.assertEqual([], self.faults(documents))

    def test_the_schema_refuses_what_it_does_not_describe(self):
        report = self.report("theory fill")
        wrong = [("report", name, {**report, **change}) for name, change in (
            ("a key", {"another": 1}), ("a version", {"schema": 2}), ("rows", {"rows": [{"bits": "many"}]}),
            ("a parameter", {"parameters": {"another": 1}}))]
        named = {fault.split(" [")[0] for fault in self.faults([("report", "right", report), *wrong])}
        self.assertEqual({name for _, name, _ in wrong}, named)


if __name__ == "__main__":
    unittest.main()
