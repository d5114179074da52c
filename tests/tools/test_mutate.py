"""The mutation tester makes each kind of mutant, and none where nothing could see it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools/mutate"))
import choose
import equivalent
import world
from mutants import KINDS, mutants_of
from report import Report
from trial import Verdict, road_of


def changed(body, *kinds):
    """(kind, body) of the mutants of a function's body."""
    text = f"int Some::function(int a, int b) {{\n{body}\n}}\n"
    found = []
    for each in mutants_of("cache/some.cc", text):
        if not kinds or each.kind in kinds:
            found.append((each.kind, each.applied(text).split("\n", 1)[1].removesuffix("\n}\n")))
    return found


class Kinds(unittest.TestCase):
    def test_statements_are_left_out(self):
        self.assertEqual([("drop", "{}")], changed("count(a);"))
        self.assertEqual([("drop", "{}")], changed("++count_;"))
        self.assertEqual([("drop", "if (on) {}")], changed("if (on) count(a);", "drop"))
        self.assertEqual([("drop", "for (;;) { {} }")], changed("for (;;) { break; }"))

    def test_lines_keep_their_numbers(self):
        self.assertEqual([("drop", "{}\n\nrest")], changed("count(\n    a);\nrest"))

    def test_returns_are_left_out(self):
        self.assertEqual([("return", "if (on) {}")], changed("if (on) return a;", "return", "drop"))

    def test_resets_are_left_out(self):
        for text in ("head_ = {};", "reader_ = nullptr;", "tries_ = 0;", "body_.reset();", "name_.clear();",
                     "std::exchange(ticket_, {});", "shared->on_ = false;"):
            self.assertIn(("reset", "{}"), changed(text), text)

    def test_conditions_are_negated_by_their_parts(self):
        self.assertEqual([("negate", "if (!(on())) go();")], changed("if (on()) go();", "negate"))
        self.assertEqual([("negate", "if (on()) go();")], changed("if (!on()) go();", "negate"))
        self.assertEqual([("negate", "if (!(on) && (x || !off)) go();"),
                          ("negate", "if (on && !((x || !off))) go();"),
                          ("negate", "if (on && (!(x) || !off)) go();"),
                          ("negate", "if (on && (x || off)) go();")],
                         changed("if (on && (x || !off)) go();", "negate"))
        self.assertEqual([("negate", "return !(on) && ready;"), ("negate", "return on && !(ready);")],
                         changed("return on && ready;", "negate"))
        self.assertEqual([("negate", "x = !(on()) ? a : b;")], changed("x = on() ? a : b;", "negate"))
        self.assertEqual([("negate", "if (auto x = f(); !(x)) go();")],
                         changed("if (auto x = f(); x) go();", "negate"))
        self.assertEqual([], changed("if (const auto* x = f()) go();", "negate"))

    def test_comparisons_move_by_one(self):
        for was, now in (("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"), ("==", "!="), ("!=", "==")):
            self.assertEqual([("compare", f"return a {now} b;")], changed(f"return a {was} b;", "compare"))

    def test_constants_move_to_where_their_comparison_does_not(self):
        for was, now in (("a < 5", "a < 4"), ("a <= 5", "a <= 6"), ("a > 5", "a > 6"), ("a >= 5", "a >= 4"),
                         ("a == 1U", "a == 2U")):
            self.assertEqual([("constant", f"return {now};")], changed(f"return {was};", "constant"))
        self.assertEqual([], changed("return a < 0;", "constant"))

    def test_arguments_are_swapped_and_copied(self):
        self.assertEqual([("swap", "return f(b, a);"), ("copy", "return f(a, a);")],
                         changed("return f(a, b);", "swap", "copy"))
        self.assertEqual([("swap", "return {.x = b, .y = a};"), ("copy", "return {.x = a, .y = a};")],
                         changed("return {.x = a, .y = b};", "swap", "copy"))
        self.assertEqual([("swap", "return f<A, B>(b(1), a);"), ("copy", "return f<A, B>(a, a);")],
                         changed("return f<A, B>(a, b(1));", "swap", "copy"))
        self.assertEqual([("swap", "f(b, std::move(a));")], changed("f(std::move(a), b);", "swap", "copy"))

    def test_initialisers_of_members_are_code(self):
        text = "Some::Some(int a, int b) : inner_(a, b), c_{} {\n  go();\n}\n"
        found = mutants_of("cache/some.cc", text)
        self.assertEqual(["swap", "copy", "drop"], [each.kind for each in found])
        self.assertEqual({"Some::Some"}, {each.function for each in found})

    def test_code_of_lambdas_is_code(self):
        self.assertIn(("drop", "post([this, a]() -> int { {} return 1; });"),
                      changed("post([this, a]() -> int { go(); return 1; });"))


class LeftAlone(unittest.TestCase):
    def test_nothing_of_comments_strings_and_the_preprocessor(self):
        text = """\
#include <a < b>
#define LESS(a, b) \\
  if (a < b) f(a, b);
// if (a < b) f(a, b);
/* return a == b; */
static_assert(sizeof(int) == 4);
namespace encore {
constexpr int kLimit = 4;
template <typename A, typename B>
int declared(int a, int b);
enum class Kind { kOne = 1 < 2 };
struct Some {
  int a = 0;
  bool operator==(const Some&) const = default;
};
void function() {
  static_assert(kLimit == 4, "four");
  // if (a < b) return;
  std::vector<std::pair<int, int>> values;
  const std::string_view text = R"(if (a < b) return;)";
  auto more = "a < b" + 'c';
}
}
"""
        self.assertEqual([], mutants_of("cache/some.cc", text))

    def test_nothing_of_log_messages_and_checks(self):
        for text in ('log::info("a {} of {}", a, b);', 'spdlog::warn("{}", a < b);', 'warn("no " + a);',
                     'ENCORE_CHECK(a < b, "in order");', "static_assert(a < b);"):
            self.assertEqual([], changed(text), text)

    def test_nothing_of_declarations_and_operators(self):
        for text in ("const auto x = y;", "int count = 0;", "std::vector<int> all(a);",
                     "std::map<int, int> all{};", "Foo& x = y;"):
            self.assertEqual([], changed(text, "drop", "reset"), text)
        self.assertEqual([], changed("std::min(a, b);", "swap", "copy"))
        self.assertEqual([], changed("f(a, a);", "swap", "copy"))
        self.assertEqual([], changed('f("text", a);', "swap", "copy"))

    def test_each_is_made_once(self):
        text = (ROOT / "proxy/transfer/transfer.cc").read_text()
        found = mutants_of("proxy/transfer/transfer.cc", text)
        self.assertEqual(len(found), len({each.applied(text) for each in found}))
        self.assertEqual(len(found), len({each.key for each in found}))
        self.assertEqual(set(KINDS) - {each.kind for each in found}, set())
        for each in found:
            self.assertEqual(text.count("\n"), each.applied(text).count("\n"), each)


SOURCE = "void f() {\n  go();\n  go();\n}\nvoid g() {\n  if (a) go();\n}\n"
ENTRY = """[[equivalent]]
file = 'cache/some.cc'
function = 'f'
kind = 'drop'
was = 'go();'
now = '{}'
nth = 2
reason = 'it goes anyway'
"""


class Equivalent(unittest.TestCase):
    def setUp(self):
        self.mutants = mutants_of("cache/some.cc", SOURCE)

    def test_an_entry_finds_its_mutant_where_lines_moved(self):
        entries = equivalent.read_entries(ENTRY)
        moved = mutants_of("cache/some.cc", f"// new\nvoid e() {{ go(); }}\n{SOURCE}")
        for mutants, line in ((self.mutants, 3), (moved, 5)):
            self.assertEqual([line], [each.line for each in mutants if each.key in entries])
            self.assertEqual([], equivalent.stale_entries(entries, mutants, ["cache/some.cc"]))

    def test_an_entry_that_matches_nothing_is_told(self):
        entries = equivalent.read_entries(ENTRY)
        one = mutants_of("cache/some.cc", SOURCE.replace("go();", "come();", 1))
        self.assertEqual(["equivalent.toml: nothing matches cache/some.cc, f, drop: go();"],
                         equivalent.stale_entries(entries, one, ["cache/some.cc"]))
        self.assertEqual([], equivalent.stale_entries(entries, one, ["cache/other.cc"]))

    def test_what_is_printed_is_what_is_read(self):
        for each in mutants_of("a.cc", SOURCE + "void h() { f('a', \"b\\\"\", c < d); }\n"):
            text = equivalent.entry_of(each).replace('reason = ""', 'reason = "none"')
            self.assertEqual({each.key: "none"}, equivalent.read_entries(text))

    def test_faulty_entries_are_told(self):
        for text, told in ((ENTRY.replace("it goes anyway", " "), "no reason"), (ENTRY + ENTRY, "already"),
                           (ENTRY.replace("was", "wax"), "missing ['was'], unknown ['wax']"),
                           (ENTRY.replace("= 2", "= '2'"), "of the wrong type ['nth']")):
            with self.assertRaises(equivalent.Faulty) as raised:
                equivalent.read_entries(text)
            self.assertIn(told, str(raised.exception))

    def test_those_of_the_tree_match(self):
        entries = equivalent.read_entries((ROOT / "tools/mutate/equivalent.toml").read_text())
        for file in sorted({key[0] for key in entries}):
            self.assertTrue((ROOT / file).is_file(), file)
            mutants = mutants_of(file, (ROOT / file).read_text())
            self.assertEqual([], equivalent.stale_entries(entries, mutants, [file]))


class Programs(unittest.TestCase):
    def test_a_program_has_the_code_of_a_source_whose_names_the_linker_made_local(self):
        for kind, has in (("T", True), ("t", True), ("U", False), ("W", False)):
            made = world.World.__new__(world.World)
            made.compile = {"cache/a.cc": ["c++", "-o", "a.o"]}
            made.links = {"test": ["c++", "-o", "test", "b.o"]}
            made.symbols = {}
            names = {"a.o": "0 T f\n0 W any\n", "test": f"0 {kind} f\n0 W any\n"}
            with tempfile.TemporaryDirectory() as folder:
                made.build = pathlib.Path(folder)
                (made.build / "a.o").touch()
                with unittest.mock.patch.object(
                        world, "output_of", lambda *words, names=names: names[pathlib.Path(words[-1]).name]):
                    self.assertEqual(has, made.has_object("test", "cache/a.cc"), kind)


class Reported(unittest.TestCase):
    def test_survivors_by_line_and_rates_by_folder(self):
        report = Report()
        verdicts = [Verdict("killed", "own", "cache", "failed", 2.0), Verdict("survived", seconds=3.0),
                    Verdict("invalid")]
        mutants = mutants_of("cache/some.cc", SOURCE)
        for mutant, verdict in zip(mutants, verdicts):
            report.add(mutant, verdict)
        report.equivalent.append((mutants[3], "a reason"))
        text = report.text(5)
        self.assertIn("1 survived:\ncache/some.cc:3: drop in f\n    was go();\n    now {}\n", text)
        self.assertRegex(text, r"cache +2 +1 +1 +50% +1 +0 +0 +0 +0 +5\n")
        self.assertIn("not counted: 1 that do not compile, 0 that compile to the same code, "
                      "1 judged equivalent\n1 of 2 mutants killed (50.0%), 1 survived, in 5 s", text)
        self.assertIn('"rate": 0.5', report.json(5, {}))


class Chosen(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.git("init", "-q", "-b", "main")
        self.write("cache/a.cc", "1\n2\n3\n")
        self.write("docs/a.md", "1\n")
        self.commit()

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=self.root,
                       check=True, capture_output=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-q", "-m", "change")

    def test_lines_of_a_commit_where_they_are_now(self):
        self.write("cache/a.cc", "1\n2 changed\n3\n")
        self.write("docs/a.md", "2\n")
        self.commit()
        self.write("cache/a.cc", "0\n1\n2 changed\n3\n")
        self.commit()
        self.assertEqual({"cache/a.cc": {3}}, choose.changed_lines(self.root, "HEAD~1"))
        self.assertEqual({"cache/a.cc": {1}}, choose.changed_lines(self.root, "HEAD"))
        self.assertEqual({"cache/a.cc": {1, 3}}, choose.changed_lines(self.root, "HEAD~2..HEAD"))

    def test_lines_that_differ_from_main(self):
        self.git("checkout", "-q", "-b", "work")
        self.write("cache/a.cc", "1\n2 changed\n3\n")
        self.commit()
        self.write("cache/a.cc", "1\n2 changed\n3\n4\n")
        self.write("cache/new.cc", "1\n")
        self.assertEqual({"cache/a.cc": {2, 4}, "cache/new.cc": {1, 2}},
                         choose.changed_lines(self.root, None))

    def test_shares_are_everything_in_turn(self):
        mutants = mutants_of("cache/some.cc", SOURCE)
        shares = [choose.share_of(mutants, 3, turn) for turn in range(3)]
        self.assertEqual(sorted(each.key for each in mutants),
                         sorted(each.key for share in shares for each in share))
        self.assertEqual(choose.shuffled(mutants, 7), choose.shuffled(mutants[::-1], 7))

    def test_the_longest_road_is_taken(self):
        roads = {"proxy/process/": ["a"], "proxy/process/purge": ["b"]}
        self.assertEqual(["b"], road_of(roads, "proxy/process/purge_executor.cc"))
        self.assertEqual(["a"], road_of(roads, "proxy/process/server.cc"))
        self.assertEqual([], road_of(roads, "base/check.cc"))


if __name__ == "__main__":
    unittest.main()
