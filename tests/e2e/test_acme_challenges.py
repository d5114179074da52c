"""Challenges of ACME from a directory: which requests get a file, and that nothing else leaves it."""

import os
import signal

from client import Client, field
from harness import Case, eventually, free_port
from http2 import Http2Client
from origin import Origin, fresh
from tls import TlsCase, raw

TOKEN = "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0"
PATH = "/.well-known/acme-challenge/"


def authorization(token=TOKEN):
    return token + ".9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI"


class Challenges(Case):
    def setUp(self):
        super().setUp()
        self.place = self.directory / "acme"
        self.place.mkdir()
        self.put()

    def put(self, name=TOKEN, text=None):
        (self.place / name).write_text(authorization(name) if text is None else text)

    def serve(self, listen=None, **sections):
        self.origin = Origin(self, default=fresh(b"page", Content_Type="text/plain"))
        self.port = free_port()
        self.proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{self.port}", "mode": "reverse", **(listen or {})}],
            acme={"challenge_directory": str(self.place)},
            origin=[{"servers": [self.origin.url("")]}], **sections)

    def ask(self, name=TOKEN, method="GET", fields="", target=None):
        with Client(self.port) as client:
            client.send(f"{method} {target or PATH + name} HTTP/1.1\r\nHost: any.example\r\n"
                        f"{fields}\r\n")
            return client.read_response(method)

    def test_a_token_is_answered_before_rules_logins_lists_and_redirects(self):
        users = self.directory / "users"
        users.write_text("")
        users.chmod(0o600)
        self.serve({"users_file": str(users), "redirect_https": True,
                    "deny_clients": ["127.0.0.0/8"]},
                   rule=[{"path": "/*", "redirect": "https://elsewhere.example/"}])
        self.assertEqual(403, self.ask(target="/other").status)
        for number in range(3):
            answer = self.ask()
            self.assertEqual((200, authorization().encode()), (answer.status, answer.body), number)
            self.assertEqual("application/octet-stream", field(answer, "Content-Type"))
            self.assertEqual("no-store", field(answer, "Cache-Control"))
        self.assertEqual(0, self.origin.count())
        eventually(lambda: self.proxy.outcomes() == {"denied": 1, "challenge": 3}, "all are counted")
        self.assertEqual(0, self.proxy.metrics()["encore_cache_objects"])
        record = self.proxy.access_records(4)[-1]
        self.assertEqual(("challenge", 200, PATH + TOKEN),
                         (record["outcome"], record["status"], record["url"]), record)

    def test_each_request_reads_the_file_as_it_is(self):
        self.serve()
        self.assertEqual(200, self.ask().status)
        self.put(text=authorization() + "X\n")
        self.assertEqual((authorization() + "X\n").encode(), self.ask().body)
        (self.place / TOKEN).unlink()
        self.assertEqual(404, self.ask().status)
        self.place.rename(self.directory / "away")
        self.assertEqual(404, self.ask().status)
        self.place.mkdir()
        self.put()
        self.assertEqual(200, self.ask().status)

    def test_head_has_the_length_and_no_content(self):
        self.serve()
        answer = self.ask(method="HEAD")
        self.assertEqual((200, str(len(authorization()))),
                         (answer.status, field(answer, "Content-Length")))

    def test_what_is_no_token_or_no_file_is_404_and_asks_nobody(self):
        secret = self.directory / "secret"
        secret.write_text(authorization("secret"))
        self.put("a.b")
        self.put("link.target")
        (self.place / "link").symlink_to(secret)
        (self.place / "inside").symlink_to(self.place / TOKEN)
        (self.place / "folder").mkdir()
        os.mkfifo(self.place / "fifo")
        self.put("empty", "")
        self.put("key", "-----BEGIN PRIVATE KEY-----\n")
        self.put("of-another", authorization())
        self.put("large", authorization("large") + "a" * 4096)
        self.put("b" * 129)
        self.serve()
        names = ["absent", "", "a.b", "..", "../secret", "../acme/" + TOKEN, "%2e%2e/secret",
                 "..%2fsecret", "%2e%2e%2fsecret", "/" + TOKEN, TOKEN + "/", TOKEN + "%00",
                 TOKEN + ";x", "./" + TOKEN, "link", "inside", "folder", "fifo", "empty", "key",
                 "of-another", "large", "b" * 129, "%4coqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0"]
        for name in names:
            with self.subTest(name):
                answer = self.ask(name)
                self.assertEqual(404, answer.status)
                self.assertNotIn(b"9jg46WB3rR", answer.body)
                self.assertIn("detail=no-challenge", field(answer, "Cache-Status"))
        self.assertEqual(0, self.origin.count())
        eventually(lambda: self.proxy.outcomes() == {"challenge": len(names)}, "all are counted")

    def test_other_paths_and_methods_are_the_origins(self):
        self.serve()
        for target in ("/.well-known/acme-challenge", "/.well-known/other", "/x" + PATH + TOKEN):
            self.assertEqual(b"page", self.ask(target=target).body, target)
        answer = self.ask(method="POST", fields="Content-Length: 0\r\n")
        self.assertEqual(b"page", answer.body)

    def test_a_query_and_the_absolute_form_do_not_matter(self):
        self.serve()
        self.assertEqual(200, self.ask(TOKEN + "?again=/1").status)
        self.assertEqual(200, self.ask(target=f"http://other.example{PATH}{TOKEN}").status)

    def test_no_content_of_a_challenge_is_taken_for_a_request(self):
        self.serve()
        inner = f"GET /inner HTTP/1.1\r\nHost: a\r\n\r\n"
        said = raw(self.port, (f"GET {PATH}{TOKEN} HTTP/1.1\r\nHost: a\r\n"
                               f"Content-Length: {len(inner)}\r\n\r\n{inner}").encode())
        self.assertEqual(1, said.count(b"HTTP/1.1 "), said)
        self.assertEqual(0, self.origin.count())

    def test_http2_with_prior_knowledge(self):
        self.serve()
        with Http2Client(self.port) as client:
            got = client.ask(PATH + TOKEN)
            self.assertEqual((200, authorization().encode()), (got.status, got.body))
            self.assertEqual(404, client.ask(PATH + "absent").status)
            head = client.ask(PATH + TOKEN, method="HEAD")
            self.assertEqual((200, b""), (head.status, head.body))
            self.assertEqual(b"page", client.ask("/page").body)

    def test_a_forward_listener_answers_for_itself_alone(self):
        self.origin = Origin(self, default=fresh(b"page"))
        self.proxy = self.encore(acme={"challenge_directory": str(self.place)})
        self.port = self.proxy.port
        self.assertEqual(authorization().encode(), self.ask().body)
        self.assertEqual(b"page", self.ask(target=self.origin.url(PATH + TOKEN)).body)

    def test_a_directory_that_is_not_there_is_told_and_may_come_later(self):
        self.place = self.directory / "later"
        self.serve()
        self.assertIn(f'"{self.place}" cannot be read', self.proxy.output())
        self.assertEqual(404, self.ask().status)
        self.place.mkdir()
        self.put()
        self.assertEqual(200, self.ask().status)

    def test_a_reload_changes_the_directory(self):
        self.serve()
        other = self.directory / "other"
        other.mkdir()
        (other / "new").write_text(authorization("new"))
        self.proxy.sections["acme"] = {"challenge_directory": str(other)}
        before = self.proxy.stats()["reloads"]
        self.proxy.write_config()
        self.proxy.signal(signal.SIGHUP)
        # One worker may have it before another.
        eventually(lambda: self.proxy.stats()["reloads"] == before + 1, "all have the new directory")
        self.assertEqual((200, 404), (self.ask("new").status, self.ask().status))


class ByTls(TlsCase):
    def test_by_tls_the_path_is_the_origins(self):
        place = self.directory / "acme"
        place.mkdir()
        (place / TOKEN).write_text(authorization())
        self.serve(plain={}, acme={"challenge_directory": str(place)})
        self.assertEqual(b"page", self.ask(PATH + TOKEN).body)
        with Client(self.plain_port) as client:
            client.send(f"GET {PATH}{TOKEN} HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(authorization().encode(), client.read_response().body)
