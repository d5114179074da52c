"""docs/CACHING-TESTS.md counts the behaviours that are tested."""

import unittest

import caching_doc


class Documented(unittest.TestCase):
    def test_the_document_counts_every_row_and_no_other(self):
        self.assertTrue(caching_doc.document() == caching_doc.DOCUMENT.read_text(),
                        "docs/CACHING-TESTS.md is not what caching_doc.py prints")


if __name__ == "__main__":
    unittest.main()
