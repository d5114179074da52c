"""curl, as people use it."""

import hashlib
import random
import unittest

from harness import Case, CertificateAuthority, need_program
from origin import Origin, chunked, fresh, response

BODY = random.Random(1).randbytes(300_000)


class Curl(Case):
    def setUp(self):
        super().setUp()
        self.program = need_program("curl")

    def curl(self, encore, *arguments, **options):
        ended = self.run_client(
            [self.program, "--silent", "--show-error", "--max-time", "60", "--proxy", encore.url,
             "--noproxy", "", *arguments], **options)
        return ended.stdout

    def test_three_curls_make_two_origin_requests(self):
        origin = Origin(self, {"/file": fresh(BODY)})
        encore = self.encore()
        target = self.directory / "out"
        said = []
        for _ in range(3):
            head = self.curl(encore, "-D", "-", "-o", target, origin.url("/file")).decode()
            said += [line for line in head.splitlines() if line.lower().startswith("cache-status")]
            self.assertEqual(hashlib.sha256(BODY).digest(),
                             hashlib.sha256(target.read_bytes()).digest())
        self.assertEqual(2, origin.count())
        self.assertIn("detail=first-request", said[0])
        self.assertIn("detail=second-request", said[1])
        self.assertIn("encore; hit; ttl=", said[2])

    def test_connect_reaches_a_tls_origin_and_keeps_its_certificate(self):
        authority = CertificateAuthority(self)
        origin = Origin(self, {"/secret": response(b"over tls")},
                        tls=authority.server_context("127.0.0.1"))
        encore = self.encore(forward={"connect_ports": [origin.port]})
        body = self.curl(encore, "--cacert", authority.certificate, origin.url("/secret"))
        self.assertEqual(b"over tls", body)
        refused = self.curl(encore, origin.url("/secret"), check=False)
        self.assertIn(b"certificate", refused)  # without the CA curl must not trust it

    def test_connect_carries_large_bodies_both_ways(self):
        authority = CertificateAuthority(self)
        origin = Origin(self, {"/echo": lambda x: response(x.request.body)},
                        tls=authority.server_context("127.0.0.1"))
        encore = self.encore(forward={"connect_ports": [origin.port]})
        source, target = self.directory / "in", self.directory / "out"
        source.write_bytes(BODY * 10)
        self.curl(encore, "--cacert", authority.certificate, "--data-binary", f"@{source}",
                  "-o", target, origin.url("/echo"))
        self.assertEqual(hashlib.sha256(BODY * 10).digest(),
                         hashlib.sha256(target.read_bytes()).digest())

    def test_an_offer_of_http2_is_passed_over(self):
        origin = Origin(self, {"/file": fresh(BODY)})
        encore = self.encore()
        for _ in range(3):
            self.assertTrue(self.curl(encore, "--http2", origin.url("/file")) == BODY)
        self.assertEqual(2, origin.count())

    def test_a_range_is_answered_in_part_whether_stored_or_not(self):
        origin = Origin(self, {"/file": self.part_of_file})
        encore = self.encore()
        for _ in range(4):
            part = self.curl(encore, "-r", "1000-1999", origin.url("/file"))
            self.assertEqual(BODY[1000:2000], part)
        self.assertEqual(BODY[-5:], self.curl(encore, "-r", "-5", origin.url("/file")))

    @staticmethod
    def part_of_file(exchange):
        wanted = dict(exchange.request.fields).get("range")
        if not wanted:
            return fresh(BODY)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else len(BODY) - int(last)
        end = int(last) + 1 if first and last else len(BODY)
        return fresh(BODY[start:end], status="206 Partial Content",
                     Content_Range=f"bytes {start}-{end - 1}/{len(BODY)}")

    def test_a_post_arrives_whole_and_is_never_stored(self):
        origin = Origin(self, {"/form": lambda x: response(x.request.body[::-1])})
        encore = self.encore()
        for _ in range(3):
            self.assertEqual(b"321", self.curl(encore, "--data", "123", origin.url("/form")))
        self.assertEqual(3, origin.count("/form"))

    def test_an_upload_with_expect_and_chunks_arrives_whole(self):
        origin = Origin(self, {"/put": lambda x: response(
            hashlib.sha256(x.request.body).hexdigest())})
        encore = self.encore()
        source = self.directory / "in"
        source.write_bytes(BODY)
        digest = hashlib.sha256(BODY).hexdigest().encode()
        self.assertEqual(digest, self.curl(encore, "-H", "Expect: 100-continue", "-T", source,
                                           origin.url("/put")))
        self.assertEqual(digest, self.curl(encore, "-H", "Transfer-Encoding: chunked", "-T", source,
                                           origin.url("/put")))

    def test_http_1_0_gets_a_whole_body_of_a_chunked_origin(self):
        origin = Origin(self, {"/chunks": chunked(b"one ", b"two ", b"three")})
        encore = self.encore()
        for _ in range(3):
            body = self.curl(encore, "--http1.0", origin.url("/chunks"))
            self.assertEqual(b"one two three", body)

    def test_many_at_once_over_several_connections(self):
        origin = Origin(self, default=fresh(BODY[:20000]))
        encore = self.encore()
        for _ in range(3):
            self.curl(encore, "--parallel", "--parallel-max", "16", "-o", self.directory / "out#1",
                      origin.url("/many/[1-60]"))
            for number in range(1, 61):
                self.assertEqual(BODY[:20000], (self.directory / f"out{number}").read_bytes())
        self.assertLessEqual(origin.count(), 120)


if __name__ == "__main__":
    unittest.main()
