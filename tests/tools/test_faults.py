"""The faults that the simulation must find: each is still the text of one source."""

import importlib.util
import pathlib
import tomllib
import unittest

FAULTS = pathlib.Path(__file__).resolve().parents[1] / "simulate" / "faults"


def load_run():
    spec = importlib.util.spec_from_file_location("faults_run", FAULTS / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Faults(unittest.TestCase):
    def setUp(self):
        self.run_module = load_run()
        self.faults = tomllib.loads((FAULTS / "faults.toml").read_text())["fault"]

    def test_each_has_its_place_in_one_source(self):
        files = self.run_module.sources()
        for fault in self.faults:
            with self.subTest(fault=fault["name"]):
                try:
                    edits = self.run_module.edits_of(fault, files)
                except SystemExit as wrong:
                    self.fail(str(wrong))
                for source, text in edits.items():
                    self.assertNotEqual(text, source.read_text(), "the fault changes nothing")

    def test_names_are_said_once(self):
        names = [fault["name"] for fault in self.faults]
        self.assertEqual(len(names), len(set(names)))
        for fault in self.faults:
            self.assertTrue(fault["what"].endswith("."), fault["name"])


if __name__ == "__main__":
    unittest.main()
