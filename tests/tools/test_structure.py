"""The structure check finds what is planted, and nothing in what is right."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import circles
import classes
import decisions
import structure


def faults(path, text):
    return [fault for _, fault in structure.check_file(path, text)]


class Layering(unittest.TestCase):
    def test_includes_go_downwards_only(self):
        allowed = [
            ("filter/a.h", "base/error.h"),
            ("base/cli/a.h", "base/error.h"),
            ("filter/cli/a.cc", "filter/published/form.h"),
            ("cache/a.cc", "filter/hash.h"),
            ("config/a.cc", "cache/index.h"),
            ("proxy/store/a.cc", "proxy/http/uri.h"),
            ("proxy/process/a.cc", "proxy/net/loop.h"),
            ("sim/replay/a.cc", "sim/workload/zipf.h"),
            ("tests/sim/a.cc", "sim/workload/zipf.h"),
        ]
        forbidden = [
            ("base/a.h", "filter/hash.h"),
            ("base/cli/a.h", "config/config.h"),
            ("proxy/net/a.cc", "base/cli/progress.h"),
            ("filter/published/a.cc", "filter/cli/program.h"),
            ("filter/a.h", "cache/index.h"),
            ("cache/a.cc", "config/config.h"),
            ("config/a.cc", "proxy/http/uri.h"),
            ("proxy/http/a.cc", "proxy/net/loop.h"),
            ("proxy/http/a.cc", "filter/hash.h"),
            ("proxy/net/a.cc", "config/config.h"),
            ("proxy/store/a.cc", "proxy/net/loop.h"),
            ("proxy/observe/a.cc", "proxy/settings/runtime.h"),
            ("proxy/settings/a.cc", "proxy/request/request_view.h"),
            ("proxy/transfer/a.cc", "proxy/settings/runtime.h"),
            ("proxy/transfer/a.cc", "proxy/process/worker.h"),
            ("proxy/request/a.cc", "proxy/process/worker.h"),
            ("sim/replay/a.cc", "proxy/http/uri.h"),
            ("filter/a.cc", "tests/catch.h"),
            ("filter/a.cc", "hash.h"),
        ]
        for path, target in allowed:
            self.assertEqual([], faults(path, f'#include "{target}"\n'), (path, target))
        for path, target in forbidden:
            self.assertEqual(1, len(faults(path, f'#include "{target}"\n')), (path, target))

    def test_libraries_stay_where_they_belong(self):
        allowed = [
            ("proxy/net/loop.cc", "event2/event.h"),
            ("proxy/net/tls.cc", "openssl/ssl.h"),
            ("filter/hash.cc", "openssl/evp.h"),
            ("config/toml_reader.cc", "toml++/toml.h"),
            ("base/error.h", "expected"),
        ]
        forbidden = [
            ("proxy/process/worker.cc", "event2/event.h"),
            ("filter/hash.cc", "openssl/ssl.h"),
            ("proxy/process/worker.cc", "openssl/x509v3.h"),
            ("proxy/net/loop.cc", "event.h"),
            ("sim/replay/a.cc", "curl/curl.h"),
            ("config/toml_reader.h", "toml++/toml.h"),
            ("proxy/process/log.h", "spdlog/spdlog.h"),
        ]
        for path, target in allowed:
            self.assertEqual([], faults(path, f"#include <{target}>\n"), (path, target))
        for path, target in forbidden:
            self.assertEqual(1, len(faults(path, f"  #  include <{target}>\n")), (path, target))

    def test_every_folder_has_a_place(self):
        self.assertEqual(1, len(faults("elsewhere/a.cc", "int a;\n")))


class Purity(unittest.TestCase):
    def test_pure_folders_read_no_clock_and_no_random_device(self):
        for code in ("auto t = monotonic_now();", "std::chrono::steady_clock::now();",
                     "time(nullptr);", "std::random_device d;", "RAND_bytes(b, 8);", "rand();"):
            self.assertEqual(1, len(faults("cache/a.cc", code + "\n")), code)
            self.assertEqual([], faults("proxy/process/a.cc", code + "\n"), code)

    def test_comments_strings_and_longer_names_do_not_count(self):
        for code in ("// never calls wall_now()", '"rand()"', "int operand();", "/* time(0)\n*/"):
            self.assertEqual([], faults("filter/a.cc", code + "\n"), code)


class Prefetching(unittest.TestCase):
    def test_the_built_in_is_used_where_its_calls_are_not_dropped(self):
        code = "__builtin_prefetch(p);\n"
        self.assertEqual(1, len(faults("cache/a.cc", code)))
        self.assertEqual([], faults("base/prefetch.h", "#pragma once\n" + code))
        self.assertEqual([], faults("cache/a.cc", "encore::prefetch(p);  // no __builtin_prefetch\n"))


class Text(unittest.TestCase):
    def test_files_stay_small(self):
        self.assertEqual([], faults("base/a.cc", "\n" * 600))
        self.assertEqual(1, len(faults("base/a.cc", "\n" * 601)))

    def test_nothing_is_left_open(self):
        for mark in ("TO" + "DO", "FIX" + "ME", "not " + "implemented"):
            self.assertEqual(1, len(faults("base/a.cc", f"// {mark}: later\n")), mark)

    def test_lines_end_clean(self):
        self.assertEqual(1, len(faults("base/a.cc", "int a; \n")))
        self.assertEqual(1, len(faults("base/a.cc", "int a;\r\n")))
        self.assertEqual(1, len(faults("base/a.cc", "int a;")))
        self.assertEqual([], faults("base/a.cc", ""))


def circle_faults(files, allowed=()):
    texts = {path: "".join(f'#include "{target}"\n' for target in targets)
             for path, targets in files.items()}
    return [unit for unit, _ in circles.faults(texts, set(allowed))]


class Circles(unittest.TestCase):
    def test_units_that_go_one_way_stand_in_none(self):
        self.assertEqual([], circle_faults({
            "a/one.h": [], "a/one.cc": ["a/one.h", "a/two.h"], "a/two.h": ["a/three.h"],
            "a/three.h": [], "a/three.cc": ["a/three.h"]}))

    def test_header_and_source_are_one_unit(self):
        self.assertEqual(["a/one", "a/two"], circle_faults({
            "a/one.h": [], "a/one.cc": ["a/one.h", "a/two.h"], "a/two.h": ["a/one.h"]}))

    def test_a_source_named_after_a_header_belongs_to_it(self):
        self.assertEqual(["a/one", "a/two"], circle_faults({
            "a/one.h": [], "a/one_more_part.cc": ["a/one.h", "a/two.h"], "a/two.h": ["a/one.h"]}))

    def test_longer_circles_are_found_and_told_apart(self):
        files = {"a/x.h": ["a/y.h"], "a/y.h": ["a/z.h"], "a/z.h": ["a/x.h"],
                 "a/p.h": ["a/q.h", "a/x.h"], "a/q.h": ["a/p.h"], "a/free.h": ["a/p.h"]}
        self.assertEqual({"a/x", "a/y", "a/z", "a/p", "a/q"}, set(circle_faults(files)))
        self.assertEqual([["a/x", "a/y", "a/z"], ["a/p", "a/q"]],
                         circles.circles(circles.uses(
                             {path: "".join(f'#include "{t}"\n' for t in targets)
                              for path, targets in files.items()})))

    def test_what_is_listed_is_let_be_until_it_is_mended(self):
        circle = {"a/x.h": ["a/y.h"], "a/y.h": ["a/x.h"]}
        self.assertEqual([], circle_faults(circle, ["a/x", "a/y"]))
        self.assertEqual(["a/y"], circle_faults(circle, ["a/x"]))
        self.assertEqual(["a/x"], circle_faults({"a/x.h": [], "a/y.h": []}, ["a/x"]))


def class_faults(code, allowed=()):
    return [fault for _, _, fault in classes.faults({"proxy/a.h": code}, dict(allowed))]


class Classes(unittest.TestCase):
    @staticmethod
    def code(functions=0, booleans=0):
        return ("class Some final : public Other {\n public:\n  Some(int a) : a_{a} {}\n"
                "  template <typename T>\n  std::map<int, T> get() const { if (a_) { return {}; } }\n"
                " private:\n  struct Part {\n    bool own = false;\n    void f();\n  };\n"
                + "  virtual std::vector<int> f(std::function<void(int)> g) const = 0;\n" * functions
                + "  bool flag_ = false;\n" * booleans
                + "  std::function<void(int)> call_;\n  int a_ ENCORE_GUARDED_BY(mutex_) = f(1);\n};\n")

    def test_private_functions_are_counted(self):
        self.assertEqual([], class_faults(self.code(functions=25)))
        self.assertEqual(["Some: 26 private functions, at most 25"],
                         class_faults(self.code(functions=26)))

    def test_boolean_members_are_counted(self):
        self.assertEqual([], class_faults(self.code(booleans=5)))
        self.assertEqual(["Some: 6 boolean members, at most 5"],
                         class_faults(self.code(booleans=6)))

    def test_a_record_without_functions_may_say_what_it_likes(self):
        self.assertEqual([], class_faults("struct Said {\n" + "  bool a = false;\n" * 9 + "};\n"))
        pointer = "  std::vector<int> (*make)(const void*) = nullptr;\n"
        self.assertEqual([], class_faults("struct Said {\n" + "  bool a = false;\n" * 9 + pointer + "};\n"))

    def test_classes_of_all_folders_are_looked_at_but_those_of_tests(self):
        for folder, faults in (("base", 1), ("filter/cli", 1), ("cache", 1), ("config", 1),
                               ("proxy/http", 1), ("sim/replay", 1), ("tests/cache", 0)):
            texts = {f"{folder}/a.h": self.code(functions=26)}
            found = [fault for path, _, fault in structure.check_tree(texts)
                     if path == f"{folder}/a.h"]
            self.assertEqual(faults, len(found), folder)

    def test_what_is_listed_may_not_grow_and_leaves_the_list(self):
        listed = {"Some": (30, 5)}
        self.assertEqual([], class_faults(self.code(functions=30), listed))
        self.assertEqual(1, len(class_faults(self.code(functions=31), listed)))
        self.assertEqual(1, len(class_faults(self.code(functions=25), listed)))
        self.assertEqual(1, len(class_faults("class Other {};\n", listed)))


class Decisions(unittest.TestCase):
    # In two pieces, so that this file names no record.
    FOLDER = "docs/" + "decisions/"

    def faults(self, code, path="cache/a.h", records=("0010-one-subject.md",), title="# One"):
        texts = {self.FOLDER + name: title + "\n" for name in records}
        texts[path] = code
        return [f"{name}:{line}: {fault}" for name, line, fault in decisions.faults(texts)]

    def test_a_record_that_a_source_names_is_right(self):
        for path in ("cache/a.h", "proxy/net/a.cc", "tests/simulate/CMakeLists.txt", "tools/a.sh"):
            self.assertEqual([], self.faults(f"\n// Why: {self.FOLDER}0010.\n", path))

    def test_a_record_that_no_source_names_is_found(self):
        fault = f"{self.FOLDER}0010-one-subject.md:1: no source names it as {self.FOLDER}0010"
        self.assertEqual([fault], self.faults("int a;\n"))
        self.assertEqual([fault], self.faults(f"{self.FOLDER}0010\n", "docs/CACHING.md"))

    def test_a_name_of_no_record_is_found(self):
        for path in ("cache/a.h", "docs/CACHING.md"):
            named = f"// {self.FOLDER}0010\n// Why: {self.FOLDER}0011.\n"
            self.assertIn(f"{path}:2: {self.FOLDER}0011: there is no such record",
                          self.faults(named, path))

    def test_a_record_is_named_in_one_form(self):
        named = f"// {self.FOLDER}0010\n"
        for other in ("deci" + "sions/0010", "Deci" + "sion 0010", self.FOLDER + "10",
                      self.FOLDER + "0010-one-subject.md"):
            self.assertEqual(1, len(self.faults(named + f"// {other}.\n")), other)
        link = "[why](deci" + "sions/0010-one-subject.md)\n"
        self.assertEqual(self.faults(""), self.faults(link, "docs/CACHING.md"))

    def test_numbers_of_titles_are_those_of_names(self):
        named = f"// {self.FOLDER}0010\n"
        for right in ("# 0010 One", "# 0010: One", "# 0010. One", "# One of 30"):
            self.assertEqual([], self.faults(named, title=right))
        for wrong in ("# 10. One", "# 0011: One"):
            self.assertEqual(1, len(self.faults(named, title=wrong)), wrong)

    def test_a_number_is_given_once(self):
        twice = ("0010-one-subject.md", "0010-other-subject.md")
        self.assertEqual([f"{self.FOLDER}{twice[1]}:1: {self.FOLDER}{twice[0]} has the number 0010, too"],
                         self.faults(f"// {self.FOLDER}0010\n", records=twice))
        self.assertEqual(1, len(self.faults(f"// {self.FOLDER}0010\n",
                                            records=("0010-one-subject.md", "some-subject.md"))))


if __name__ == "__main__":
    unittest.main()
