"""The live page's scripts under node: what they compute of answers, and what clicks do."""

import pathlib
import unittest

from harness import Case, need_program


class PageScript(Case):
    def test_the_scripts_do_what_page_script_js_says(self):
        node = need_program("node")
        self.run_client([node, "--test", pathlib.Path(__file__).with_name("page_script.js")])


if __name__ == "__main__":
    unittest.main()
