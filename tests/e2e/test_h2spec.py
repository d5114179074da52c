"""h2spec against a plain listener and one of TLS, where H2SPEC names the program.

It is no package of Debian's, but its source builds without network against Debian's
golang-golang-x-net-dev, golang-github-spf13-cobra-dev and golang-github-fatih-color-dev:
GO111MODULE=off GOPATH=WHERE:/usr/share/gocode go build ./cmd/h2spec
"""

import os
import re
import unittest

from origin import fresh
from tls import TlsCase

# Over TCP a client that begins with anything else than the preface speaks HTTP/1, and gets its 400.
FAILED_MAX = {"plain": 1, "tls": 0}


class H2spec(TlsCase):
    def setUp(self):
        self.program = os.environ.get("H2SPEC")
        if not self.program:
            raise unittest.SkipTest("H2SPEC names no program")
        super().setUp()
        self.serve(plain={"http2": True})
        self.origin.default = fresh(b"page" * 100)

    def run_spec(self, port, *arguments):
        ended = self.run_client([self.program, "-h", "127.0.0.1", "-p", port, "-o", 5, *arguments],
                                check=False)
        text = ended.stdout.decode(errors="replace")
        found = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", text)
        self.assertIsNotNone(found, text[-2000:])
        tests, _, skipped, failed = map(int, found.groups())
        self.assertGreaterEqual(tests, 146)
        self.assertEqual(0, skipped)
        return failed, text

    def test_with_prior_knowledge(self):
        failed, text = self.run_spec(self.plain_port)
        self.assertLessEqual(failed, FAILED_MAX["plain"], text)

    def test_over_tls(self):
        failed, text = self.run_spec(self.port, "-t", "-k")
        self.assertLessEqual(failed, FAILED_MAX["tls"], text)


if __name__ == "__main__":
    unittest.main()
