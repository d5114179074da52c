"""The prose check finds planted sentences, its counts only fall, dead links are found, README is short."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import links
import prose
import prose_text


def found(path, text):
    """(rule, line) of each finding."""
    return [(each.rule, each.line) for each in prose.findings(path, text)]


class Rules(unittest.TestCase):
    def test_sentences_that_begin_with_what_who_where_or_of_are_found(self):
        for word in "What", "Who", "Whose", "Whoever", "Where", "Of":
            with self.subTest(word):
                self.assertIn(("start", 3), found("docs/A.md", f"# A\n\n{word} it does.\n"))
                self.assertIn(("start", 2), found("docs/A.md", f"One sentence. The\nlast. {word} it.\n"))
        self.assertEqual([], found("docs/A.md", "Whatsoever it is. Offers are read.\n"))
        for text in ("**What** it does", "_Who_ may", "Of, by and for", "\"What it is\" is no name"):
            self.assertEqual([("start", 1)], found("docs/A.md", text + "\n"), text)

    def test_questions_headings_code_and_heads_of_tables_are_free(self):
        for text in ("What is it?\n", "# What it is\n", "## Of the disk\n", "```\nWhat it does.\n```\n",
                     "| What it is | Of it |\n|---|---|\n| a | b |\n", "`What` it says.\n",
                     "<!-- What is below is written. -->\n", "It is:\n\n    What = a\n\nThen b.\n"):
            with self.subTest(text):
                self.assertEqual([], found("docs/A.md", text))

    def test_cells_and_items_are_units_of_their_own(self):
        table = "| a | b |\n|---|---|\n| Who asks | c |\n| d | of them |\n"
        self.assertEqual([("start", 3), ("start", 4)], found("docs/A.md", table))
        self.assertEqual([("start", 2)], found("docs/A.md", "- A list\n- what is in it\n"))
        self.assertEqual([("start", 1)], found("docs/A.md", "1. Where it lies.\n"))

    def test_a_sentence_may_have_forty_words(self):
        for number, expected in ((40, []), (41, [("long", 1)])):
            self.assertEqual(expected, found("docs/A.md", "It " + "goes " * (number - 2) + "on.\n"))
        # Code counts as one word, and each item of a list for itself.
        self.assertEqual([], found("docs/A.md", "It runs `" + "a " * 50 + "`.\n"))
        self.assertEqual([], found("docs/A.md", "- It has many words here\n" * 20))

    def test_words_of_the_glossary_are_found_in_any_case(self):
        self.assertEqual([("word", 1)] * 2, found("docs/A.md", "At once it goes beside the others.\n"))
        self.assertEqual([], found("docs/A.md", "It onset besides, a neighbourhood, `at once`.\n"))
        self.assertEqual([("word", 2)], found("docs/A.md", "The proxy\nis told of it.\n"))


class Readme(unittest.TestCase):
    def test_it_is_read_in_five_minutes_and_has_no_finding(self):
        text = (TOOLS.parent / "README.md").read_text()
        self.assertLessEqual(len(text.split()), 900)
        self.assertEqual([], found("README.md", text))


class Files(unittest.TestCase):
    def test_comments_of_sources_are_read(self):
        self.assertEqual([("comment", 2)], found("proxy/a.h", "int a;\n// What it is.\n"))
        self.assertEqual([("comment", 1)], found("tests/a.cc", "int a;  // of the older generation\n"))
        self.assertEqual([("start", 2)], found("base/a.h", "// Counts the requests.\n// Who asks is not said.\n"))
        self.assertEqual([("comment", 1)], found("tools/a.py", '"""What it does."""\n'))
        self.assertEqual([("comment", 2)], found("tools/a.py", "a = 1\n# Of those.\n"))
        self.assertEqual([("comment", 2)], found("dev", "#!/usr/bin/env bash\n# What it builds.\n"))
        self.assertEqual([("comment", 1)], found("recipes/a.toml", "# Who may use it.\n"))

    def test_lines_below_each_other_are_one_comment(self):
        text = "// It reads the file\n// of the user, and\n// what it finds there.\n"
        self.assertEqual([], found("proxy/a.h", text))
        self.assertEqual([("long", 1)], found("proxy/a.h", "// It goes on and on and on\n" * 8))

    def test_strings_are_no_comments_and_comments_no_strings(self):
        self.assertEqual([], found("tests/a.cc", 'auto a = "http://What/";\nauto b = \'"\'; int c;\n'))
        self.assertEqual([("comment", 1)], found("tests/a.cc", 'auto a = "x"; // What "it" is\n'))
        self.assertEqual([], found("tests/a.cc", 'auto a = R"(\n// What it is\n)";\n'))
        self.assertEqual([("comment", 1)], found("tests/a.cc", "int a = 1'000; // what it's\n"))

    def test_messages_of_the_product_are_read_and_joined(self):
        text = 'f("Of these, those that "\n  "are told of it");\n'
        self.assertEqual([("start", 1), ("word", 1)], found("proxy/a.cc", text))
        self.assertEqual([], found("tests/a.cc", text))
        # Parts of a line, and names, are no sentences.
        self.assertEqual([], found("proxy/a.cc", 'f(" of the disk "); g("Whoever"); h("what-is");\n'))

    def test_data_and_other_files_are_not_read(self):
        for path in "tests/fuzz/corpus/a.h", "tests/e2e/data/README.md":
            self.assertFalse(prose_text.may_have_prose(path))
        self.assertIsNone(prose_text.kind_of("LICENSE", "Where it is."))


class Counts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()
        (self.root / "docs").mkdir()
        self.git("init", "-q")
        self.write("docs/A.md", "What it is.\n\nWho it is.\n")
        self.assertEqual(0, self.run_tool("--update").returncode)
        self.commit_all()

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b.invalid",
                        *arguments], check=True, capture_output=True)

    def commit_all(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a")

    def write(self, path, text):
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text)

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, "-B", TOOLS / "prose.py", "--root", self.root, *arguments],
                              capture_output=True, text=True, check=False, timeout=60)

    def accepted(self, rule):
        return json.loads((self.root / prose.COUNTS).read_text())[rule]

    def test_an_unchanged_tree_passes_in_silence(self):
        ended = self.run_tool()
        self.assertEqual((0, "", ""), (ended.returncode, ended.stdout, ended.stderr))

    def test_a_new_finding_fails_and_is_named_alone(self):
        self.write("docs/A.md", "What it is.\n\nWho it is.\n\nOf it.\n")
        ended = self.run_tool()
        self.assertEqual(1, ended.returncode)
        self.assertIn("docs/A.md:5: start: Of it", ended.stdout)
        self.assertNotIn("docs/A.md:1:", ended.stdout)
        self.assertIn("docs: start has risen from 2 to 3", ended.stdout)

    def test_a_finding_in_a_new_file_fails_committed_or_not(self):
        self.write("docs/B.md", "All is well.\n\nWhere it is.\n")
        for _ in range(2):
            ended = self.run_tool()
            self.assertEqual(1, ended.returncode)
            self.assertIn("docs/B.md:3: start: ", ended.stdout)
            self.assertNotIn("docs/A.md:", ended.stdout)
            self.commit_all()

    def test_one_that_is_gone_makes_no_room_in_another_folder(self):
        self.write("docs/A.md", "What it is.\n")
        self.write("README.md", "Of two. Of three.\n")
        ended = self.run_tool()
        self.assertEqual(1, ended.returncode)
        self.assertIn(".: start has risen from 0 to 2", ended.stdout)
        self.assertEqual(1, self.run_tool("--update").returncode)
        self.assertEqual({"docs": 2}, self.accepted("start"))

    def test_a_sentence_that_grew_is_named(self):
        self.write("docs/A.md", "What it is.\n\nWho it is.\n\n" + "It goes\n" * 21)
        self.assertIn("docs/A.md:5: long: 42 words", self.run_tool().stdout)

    def test_update_lowers_and_does_not_raise(self):
        self.write("docs/A.md", "What it is.\n")
        ended = self.run_tool()
        self.assertEqual(0, ended.returncode)
        self.assertIn("docs start 2 -> 1", ended.stdout)
        self.assertEqual(0, self.run_tool("--update").returncode)
        self.assertEqual({"docs": 1}, self.accepted("start"))
        self.write("docs/A.md", "What it is.\n\nWho it is.\n")
        self.assertEqual(1, self.run_tool().returncode)
        self.assertEqual(1, self.run_tool("--update").returncode)
        self.assertEqual({"docs": 1}, self.accepted("start"))

    def test_a_moved_file_takes_its_findings_along(self):
        (self.root / "docs/A.md").unlink()
        self.write("guide/A.md", "What it is.\n\nWho it is.\n")
        self.assertEqual(1, self.run_tool().returncode)
        self.assertEqual(0, self.run_tool("--update").returncode)
        self.assertEqual({"guide": 2}, self.accepted("start"))
        self.assertEqual(0, self.run_tool().returncode)

    def test_the_glossary_has_words_for_each(self):
        lines = self.run_tool("--glossary").stdout.splitlines()
        self.assertGreater(len(lines), 30)
        self.assertIn("under way: in progress", lines)
        self.assertIn("answer: response", lines)
        self.assertEqual([], [line for line in lines if ": " not in line])

    def test_pages_have_a_row_each(self):
        ended = self.run_tool("--pages")
        self.assertRegex(ended.stdout, r"(?m)^docs/A\.md +6 +2 +2 +100\.0 +0 +0$")


    def test_the_lint_runs_both_checks(self):
        lint = (TOOLS / "lint").read_text()
        for name in "prose", "links":
            self.assertRegex(lint, rf"(?m)^step {name} python3 -B tools/{name}\.py$")


class Links(unittest.TestCase):
    TEXTS = {"README.md": "# A\n\n[b](docs/B.md#two-words)\n",
             "docs/B.md": "# B\n\n## Two words\n\n## `x` and [y](C.md)!\n\n## Two words\n\n[a](../README.md)\n",
             "docs/C.md": "```\n## Not a heading\n```\n[b](#no)\n" , "a.h": "// docs/B.md\n"}

    def faults(self, **changed):
        texts = {**self.TEXTS, "docs/C.md": "# C\n",
                 **{path.replace("__", "/").replace("_md", ".md"): text for path, text in changed.items()}}
        return [(path, line) for path, line, _ in links.faults(texts, list(texts))]

    def test_links_that_hold_pass(self):
        self.assertEqual([], self.faults())
        for link in ("B.md#two-words-1", "B.md#x-and-y", "../docs", "https://a.example/b", "#c",
                     "mailto:a@b.invalid"):
            self.assertEqual([], self.faults(docs__C_md=f"# C\n[x]({link})\n"), link)

    def test_dead_links_are_found(self):
        for link in "D.md", "B.md#three", "../../a", "#d", "docs/B.md", "../a.h#x", "B.md#two-words-2":
            self.assertEqual([("docs/C.md", 2)], self.faults(docs__C_md=f"# C\n[x]({link})\n"), link)
        self.assertEqual([], self.faults(docs__C_md="# C\n`[x](D.md)`\n```\n[x](D.md)\n```\n"))

    def test_sources_that_a_page_names_are_there(self):
        text = "`gone.cc`\n## Places in the source\n- `a/b`, `b.cc`, `a/*`, `Type`\n- `gone`, `b/a`\n"
        self.assertEqual([("docs/p.md", 4), ("docs/p.md", 4)],
                         self.faults(docs__p_md=text, **{"a/b.cc": ""}))

    def test_headings_inside_code_are_no_anchors(self):
        self.assertEqual({"a"}, links.anchors_of("# A\n```\n# b\n```\n"))

    def test_pages_that_sources_name_exist(self):
        self.assertEqual([("b.h", 2)],
                         [(path, line) for path, line, _ in links.faults(
                             {**self.TEXTS, "docs/C.md": "", "b.h": "\n// see docs/NONE.md\n"},
                             [*self.TEXTS, "b.h"])])


if __name__ == "__main__":
    unittest.main()
