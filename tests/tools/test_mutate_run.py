"""The mutation tester runs a small project's tests: what is killed and by which, and what is left."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools/mutate"))
import pairs
from mutants import mutants_of
from processes import MARK, Processes, marked

CMAKE = """\
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_options(-Werror=return-type)
enable_testing()
include_directories(${CMAKE_SOURCE_DIR})
add_library(small STATIC cache/small.cc cache/unused.cc)
add_executable(encore main.cc)
target_link_libraries(encore PRIVATE small)
add_executable(cache_test tests/cache/small_test.cc)
target_link_libraries(cache_test PRIVATE small)
set_target_properties(cache_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests/cache)
add_test(NAME cache COMMAND cache_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
add_test(NAME e2e_policies COMMAND python3 -B -m unittest test_policies
         WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/e2e)
set_tests_properties(cache PROPERTIES LABELS unit)
set_tests_properties(e2e_policies PROPERTIES LABELS e2e ENVIRONMENT "ENCORE=$<TARGET_FILE:encore>")
"""
FILES = {
    "CMakeLists.txt": CMAKE,
    ".gitignore": "build\n",
    "cache/small.h": "int least(int a, int b);\nint sum(int count);\nint seen(int a);\n",
    "cache/small.cc": """\
#include "cache/small.h"
static int start() { return 0; }
int least(int a, int b) {
  if (a < b) return a;
  return b;
}
int sum(int count) {
  int all = start();
  while (count != 0) {
    all += count;
    --count;
  }
  return all;
}
int seen(int a) {
  if (a == 3) return 1;
  return 0;
}
""",
    "cache/unused.cc": "int unused(int a) {\n  if (a < 3) return 1;\n  return 0;\n}\n",
    "main.cc": '#include "cache/small.h"\nint main() { return seen(3) + 2 * seen(4); }\n',
    "tests/cache/small_test.cc": """\
#include "cache/small.h"
int main() { return least(1, 2) == 1 && least(2, 1) == 1 && sum(3) == 6 ? 0 : 1; }
""",
    "tests/e2e/test_policies.py": """\
import os, subprocess, unittest
class Runs(unittest.TestCase):
    def test_one_of_two_is_seen(self):
        self.assertEqual(1, subprocess.run([os.environ["ENCORE"]]).returncode)
""",
}


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = pathlib.Path(cls.folder.name).resolve()
        for name, text in FILES.items():
            (cls.root / name).parent.mkdir(parents=True, exist_ok=True)
            (cls.root / name).write_text(text)
        for command in (["git", "init", "-q"], ["cmake", "-G", "Ninja", "-B", "build/dev"],
                        ["ninja", "-C", "build/dev"]):
            subprocess.run(command, cwd=cls.root, check=True, capture_output=True)

    def start(self, *arguments, **options):
        return subprocess.Popen(
            [sys.executable, "-B", ROOT / "tools/mutate", "--root", self.root, "--build",
             self.root / "build/dev", "--seed", "1", *arguments], cwd=self.root, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)

    def run_it(self, *arguments):
        process = self.start(*arguments)
        said = process.communicate(timeout=900)[0]
        return process.returncode, said

    def check_nothing_is_left(self):
        for name, text in FILES.items():
            self.assertEqual(text, (self.root / name).read_text())
        self.assertEqual([], list((self.root / "build/mutate").iterdir()))

    def test_each_is_killed_by_the_first_that_sees_it(self):
        status, said = self.run_it("cache/small.cc", "--kinds", "compare", "--jobs", "2")
        self.assertIn("cache/small.cc:4: compare  SURVIVED", said)
        self.assertIn("cache/small.cc:9: compare  killed by cache", said)
        self.assertIn("cache/small.cc:16: compare  killed by e2e_policies", said)
        self.assertIn("was if (a < b) return a;\n    now if (a <= b) return a;", said)
        self.assertIn("2 of 3 mutants killed (66.7%), 1 survived", said)
        self.assertEqual(1, status)
        self.check_nothing_is_left()

    def test_survivors_of_a_report_are_tried_by_other_stages(self):
        report = self.root / "build/report.json"
        self.run_it("cache/small.cc", "--kinds", "compare", "--stages", "own", "--json", report)
        status, said = self.run_it("--survivors", report, "--stages", "road")
        self.assertIn("2 mutants", said)
        self.assertIn("cache/small.cc:4: compare  SURVIVED", said)
        self.assertIn("cache/small.cc:16: compare  killed by e2e_policies", said)
        self.assertEqual(1, status)
        self.assertIn("no report of --json", self.run_it("--survivors", "nowhere")[1])
        self.check_nothing_is_left()

    def test_who_hangs_is_killed_by_time_and_what_does_not_compile_is_not_counted(self):
        status, said = self.run_it("--only", "cache/small.cc:11", "--only", "cache/small.cc:2", "--stages",
                                   "own", "--grace", "2")
        self.assertIn("cache/small.cc:11: drop     killed by cache, which hung", said)
        self.assertIn("not counted: 1 that do not compile", said)
        self.assertIn("1 of 1 mutants killed (100.0%)", said)
        self.assertEqual(0, status)
        self.check_nothing_is_left()

    def test_what_no_test_links_survives(self):
        status, said = self.run_it("cache/unused.cc", "--kinds", "compare", "--at-least", "0")
        self.assertIn("cache/unused.cc:2: compare  SURVIVED", said)
        self.assertEqual(0, status)

    def test_a_header_compiles_those_that_include_it(self):
        (self.root / "cache/inline.h").write_text("inline bool is_none(int a) { return a == 0; }\n")
        self.addCleanup((self.root / "cache/inline.h").unlink)
        status, said = self.run_it("cache/inline.h")
        self.assertIn("left out, for no target compiles them: cache/inline.h", said)
        self.assertEqual(0, status)

    def test_judged_equivalent_is_not_run_and_a_stale_entry_ends_it(self):
        entries = self.root / "tools/mutate/equivalent.toml"
        entries.parent.mkdir(parents=True)
        self.addCleanup(entries.unlink)
        text = ("[[equivalent]]\nfile = 'cache/unused.cc'\nfunction = 'unused'\nkind = 'compare'\n"
                "was = 'if (a < 3) return 1;'\nnow = 'if (a <= 3) return 1;'\nreason = 'unused'\n")
        entries.write_text(text)
        self.assertIn("1 judged equivalent\n", self.run_it("cache/unused.cc", "--kinds", "compare")[1])
        entries.write_text(text.replace("a < 3", "a < 4"))
        status, said = self.run_it("cache/unused.cc")
        self.assertIn("nothing matches cache/unused.cc, unused, compare: if (a < 4) return 1;", said)
        self.assertEqual(2, status)

    def test_an_interrupt_reports_and_leaves_nothing(self):
        process = self.start("--only", "cache/small.cc:11", "cache/small.cc", "--jobs", "1")
        process.stdout.readline()
        time_out = time.monotonic() + 600
        while not list(self.root.glob("build/mutate/run-*/0/cache_test")):
            self.assertLess(time.monotonic(), time_out)
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=600)[0]
        self.assertIn("interrupted", said)
        self.assertEqual(130, process.returncode)
        self.check_nothing_is_left()

    def test_wrong_arguments_are_told(self):
        for arguments, told in ((("nowhere.cc",), "there is no such file"), (("tests",), "no source in"),
                                ((), "which files?"), (("--only", "cache/small.cc"), "it takes FILE:LINE"),
                                (("--kinds", "any", "cache"), "any; accepted: drop,")):
            status, said = self.run_it(*arguments)
            self.assertIn(told, said)
            self.assertEqual(2, status)


class Pairs(unittest.TestCase):
    def test_the_compiler_tells_which_arguments_are_of_two_types(self):
        text = """\
#include <string>
#include <string_view>
struct Two { int a; std::string b; };
void f(auto&&...) {}
Two g(int one, long many, bool is, const std::string& text, std::string_view view, int* at) {
  f(one, one + 1);
  f(one, many);
  f(one, is);
  f(text, view);
  f(at, one);
  f(f2(one, 2), text);
  return {.a = one, .b = text};
}
""".replace("f2", "std::max")
        asked = list(dict.fromkeys(each.pair for each in mutants_of("a.cc", text) if each.pair))
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "a.cc"
            source.write_text(pairs.with_probes(text, asked))
            said = subprocess.run(["g++", "-std=c++23", "-fsyntax-only", "-w", source], check=False,
                                  capture_output=True, text=True).stderr
        differing = pairs.differing(asked, said)
        self.assertEqual(["one, one + 1", "text, view"],
                         [text[left[0]:right[1]] for left, right in asked
                          if (left, right) not in differing])


class Ended(unittest.TestCase):
    def test_what_a_command_leaves_in_a_session_of_its_own_is_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            result = Processes().run(
                ["sh", "-c", f"setsid sh -c 'echo ${MARK}; exec sleep 600' & wait -n 2>/dev/null; "
                 f"while [ ! -s {log} ]; do :; done"],
                cwd=folder, log=log, timeout=2, environment={})
            self.assertIn(result.outcome, ("passed", "time"))
            self.assertEqual([], list(marked(result.output.strip())))
            self.assertNotEqual("", result.output.strip())


if __name__ == "__main__":
    unittest.main()
