"""tools/site: each page has one place in the navigation."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
loader = importlib.machinery.SourceFileLoader("site_tool", str(ROOT / "tools/site"))
site = importlib.util.module_from_spec(importlib.util.spec_from_loader("site_tool", loader))
loader.exec_module(site)


RECORD = "docs/decisions/" + "0001-x.md"


class Navigation(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs/decisions").mkdir(parents=True)
        self.write("docs/A.md", "# The first\n")
        self.write("docs/B.md", "text\n# The second\n")
        self.write(RECORD, "# A decision\n")
        self.write("docs/navigation.toml", '"How to" = ["docs/A.md", "docs/B.md"]\n')

    def write(self, name, text):
        (self.root / name).write_text(text)

    def check_refused(self, text):
        with self.assertRaisesRegex(site.Problem, text):
            site.navigation(self.root)

    def test_the_pages_of_this_tree_have_their_places(self):
        sections = [title for each in site.navigation(ROOT) for title in each]
        self.assertEqual(len(sections), len(set(sections)))
        self.assertEqual("Decisions", sections[-1])

    def test_pages_are_named_by_their_headings(self):
        self.assertEqual([{"How to": [{"The first": "docs/A.md"}, {"The second": "docs/B.md"}]},
                          {"Decisions": [{"A decision": RECORD}]}],
                         site.navigation(self.root))

    def test_a_page_without_a_place_is_refused(self):
        self.write("docs/C.md", "# The third\n")
        self.check_refused("docs/C.md is missing; add it to one of: How to")

    def test_a_place_without_a_page_is_refused(self):
        (self.root / "docs/B.md").unlink()
        self.check_refused("docs/B.md does not exist")

    def test_a_page_with_two_places_is_refused(self):
        self.write("docs/navigation.toml", 'a = ["docs/A.md"]\nb = ["docs/B.md", "docs/A.md"]\n')
        self.check_refused("docs/A.md is listed twice")

    def test_a_page_without_a_heading_is_refused(self):
        self.write("docs/B.md", "text\n")
        self.check_refused("B.md: has no heading")


if __name__ == "__main__":
    unittest.main()
