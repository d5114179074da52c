"""A GET in progress when its URI is invalidated or purged (RFC 9111 4.4), or when a newer response
comes (4): it was requested before, so it is served to no later request and not stored."""

import http.client
import threading
import unittest

from client import Client, field
from harness import Case
from origin import Origin, chunked, fresh, response

URL = "/page"


class Overtaken(Case):
    """The origin holds its first GET, before the head or within the body, and answers each GET by
    the number of writes at the moment at which it was asked."""

    def start(self, held_bytes=0, **sections):
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
        self.proxy = self.encore(admission={"policy": "always"}, **sections)
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
        """Checks the response from now on, and that it is a cache hit in the end."""
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

    def reload(self, how="no-cache"):
        with Client(self.proxy.port) as client:
            return client.ask(self.origin.url(URL), fields=[("Cache-Control", how)])

    def test_what_a_reload_overtook_takes_nothings_place(self):
        for how in ("no-cache", "max-age=0"):
            for held_bytes in (0, len(fresh(b"state 0\n", ETag='"0"')) - 3):
                with self.subTest(how, held_bytes=held_bytes):
                    self.start(held_bytes)
                    self.writes += 1
                    self.assertEqual(b"state 1\n", self.reload(how).body)
                    self.assertIn("; hit", field(self.get(), "Cache-Status"))
                    self.release()
                    answer = self.get()
                    self.assertEqual(b"state 1\n", answer.body)
                    self.assertIn("; hit", field(answer, "Cache-Status"))

    def test_it_is_still_so_after_a_restart_with_a_disk(self):
        self.start(disk=[{"path": str(self.directory / "disk"), "size": "128MiB"}])
        self.writes += 1
        self.reload()
        self.release()
        self.proxy.stop()
        self.proxy.start()
        self.check(1)

    def test_a_slow_answer_with_a_later_date_is_the_most_recent(self):
        self.start()
        self.writes += 1
        self.origin.routes[URL] = response(b"state 1\n", Cache_Control="max-age=1000000",
                                           Date="Thu, 26 Nov 2026 00:00:00 GMT")
        self.reload()
        self.release()
        self.assertEqual(b"state 0\n", self.get().body)


class Validated(Case):
    """The origin holds the first validation of what it has answered before."""

    def start(self, **sections):
        self.asked, self.go = threading.Event(), threading.Event()
        self.state = 0

        def page(exchange):
            fields = dict(exchange.request.fields)
            known, state = fields.get("if-none-match"), self.state
            if known and not self.asked.is_set():
                self.asked.set()
                exchange.wait(self.go)
            if known == f'"{state}"':
                return response(b"", "304 Not Modified", Content_Length=None, ETag=known,
                                Cache_Control="max-age=600")
            seconds = 0 if state == 0 else 600
            return fresh(b"state %d\n" % state, seconds, ETag=f'"{state}"')
        self.origin = Origin(self, {URL: page})
        self.proxy = self.encore(admission={"policy": "always"}, **sections)
        self.assertEqual(b"state 0\n", self.get().body)
        self.early = []
        self.reader = threading.Thread(target=lambda: self.early.append(self.get().body))
        self.reader.start()
        self.assertTrue(self.asked.wait(60))

    def get(self, *fields):
        with Client(self.proxy.port) as client:
            return client.ask(self.origin.url(URL), fields=fields)

    def release(self):
        self.go.set()
        self.reader.join()
        self.assertEqual([b"state 0\n"], self.early)

    def check_hit(self):
        asked = self.origin.count()
        answer = self.get()
        self.assertEqual((b"state 1\n", asked), (answer.body, self.origin.count()))

    def purge(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port, timeout=30)
        connection.request("POST", "/purge?url=" + self.origin.url(URL))
        self.assertEqual(200, connection.getresponse().status)
        connection.close()

    def test_a_304_freshens_nothing_that_was_stored_since(self):
        for change in (lambda: None, self.purge):
            self.start()
            self.state = 1
            change()
            self.assertEqual(b"state 1\n", self.get(("Cache-Control", "no-cache")).body)
            self.check_hit()
            self.release()
            self.check_hit()

    def test_what_was_stored_after_a_purge_stays(self):
        self.start()
        self.state = 1
        self.purge()
        self.assertEqual(b"state 1\n", self.get().body)
        self.release()
        self.check_hit()


class NotStored(Case):
    """A newer answer that is not stored ends the older one that is."""

    def test_whatever_keeps_it_out(self):
        large = b"n" * 100_000
        for sections, newer, how in (
                ({"cache": {"max_object": "50kB"}}, lambda: fresh(large), "no-cache"),
                ({"cache": {"max_object": "50kB"}}, lambda: fresh(large), "max-age=0"),
                ({"cache": {"max_object": "50kB"}}, lambda: chunked(large), "no-cache"),
                ({"cache": {"memory": "1MiB"}}, lambda: fresh(b"n" * 900_000), "no-cache")):
            with self.subTest(sections, how=how):
                origin = Origin(self, {URL: fresh(b"older")})
                proxy = self.encore(admission={"policy": "always"}, **sections)

                def ask(*fields):
                    with Client(proxy.port) as client:
                        return client.ask(origin.url(URL), fields=fields)
                ask()
                self.assertIn("; hit", field(ask(), "Cache-Status"))
                origin.routes[URL] = newer()  # with a Date of now
                self.assertIn(b"nnnn", ask(("Cache-Control", how)).body)
                self.assertIn(b"nnnn", ask().body)


if __name__ == "__main__":
    unittest.main()
