"""A GET under way when its URI is invalidated or purged (RFC 9111 4.4): what it brings was asked for
before, so it answers nobody who asks after, and is validated before its first use."""

import http.client
import threading
import unittest

from client import Client, field
from harness import Case
from origin import Origin, fresh, response

URL = "/page"


class Overtaken(Case):
    """The origin holds its first GET, before the head or within the body, and answers each GET by
    the number of writes at the moment at which it was asked."""

    def start(self, held_bytes=0):
        self.asked, self.go = threading.Event(), threading.Event()
        self.writes = 0

        def page(exchange):
            if exchange.request.method not in ("GET", "HEAD"):
                self.writes += 1
                return response(b"", Content_Location=self.origin.url(URL))
            body = b"state %d\n" % self.writes
            answer = fresh(body, ETag=f'"{self.writes}"')
            known = dict(exchange.request.fields).get("if-none-match")
            if known == f'"{self.writes}"':
                return f"HTTP/1.1 304 Not Modified\r\nETag: {known}\r\n\r\n".encode()
            if self.asked.is_set():
                return answer
            exchange.send(answer[:held_bytes])
            self.asked.set()
            exchange.wait(self.go)
            return answer[held_bytes:]
        self.origin = Origin(self, {URL: page, "/other": page})
        self.proxy = self.encore(admission={"policy": "always"})
        self.early = []
        self.reader = threading.Thread(target=lambda: self.early.append(self.get().body))
        self.reader.start()
        self.assertTrue(self.asked.wait(60))

    def get(self, path=URL, method="GET"):
        with Client(self.proxy.port) as client:
            return client.ask(self.origin.url(path), method=method)

    def write(self, path=URL, method="POST"):
        self.assertEqual(200, self.get(path, method).status)

    def purge(self, query):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port, timeout=30)
        connection.request("POST", "/purge?" + query)
        self.assertEqual(200, connection.getresponse().status)
        connection.close()

    def release(self):
        self.go.set()
        self.reader.join()
        self.assertEqual([b"state 0\n"], self.early)

    def check(self, state):
        """What is answered from now on, and that it comes to be answered from the cache."""
        for _ in range(2):
            self.assertEqual(b"state %d\n" % state, self.get().body)
        self.assertIn("; hit", field(self.get(), "Cache-Status"))

    def test_what_an_unsafe_method_overtook_is_not_used(self):
        for method in ("POST", "PUT", "DELETE", "M-SEARCH"):
            with self.subTest(method):
                self.start()
                self.write(method=method)
                self.release()
                self.assertNotIn("; hit", field(self.get(), "Cache-Status"))
                self.check(1)

    def test_nor_where_its_body_was_under_way(self):
        self.start(held_bytes=len(fresh(b"state 0\n", ETag='"0"')) - 3)
        self.write()
        self.release()
        self.assertNotIn("; hit", field(self.get(), "Cache-Status"))
        self.check(1)

    def test_nor_where_another_uri_names_it(self):
        self.start()
        self.write("/other")
        self.release()
        self.assertNotIn("; hit", field(self.get(), "Cache-Status"))
        self.check(1)

    def test_who_asks_after_it_does_not_join_what_was_asked_for_before(self):
        self.start()
        self.write()
        self.assertEqual(b"state 1\n", self.get().body)
        self.release()
        self.check(1)

    def test_nor_after_a_purge(self):
        for query in ("url={url}", "prefix={url}", "tag=any"):
            with self.subTest(query):
                self.start()
                self.writes += 1
                self.purge(query.format(url=self.origin.url(URL)))
                self.assertEqual(b"state 1\n", self.get().body)
                self.release()
                self.check(1)

    def test_a_failed_write_overtakes_nothing(self):
        self.start()
        self.origin.routes["/other"] = response(b"", "500 No", Content_Location=URL)
        self.assertEqual(500, self.get("/other", "POST").status)
        self.release()
        self.assertIn("; hit", field(self.get(), "Cache-Status"))


if __name__ == "__main__":
    unittest.main()
