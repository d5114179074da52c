"""The requests that may share a transfer, and the response of each reader."""

import os
import select
import threading
import time
import unittest

from client import Client, NoResponse, field, get
from harness import Case, eventually
from origin import Origin, chunked, fresh, response


def in_threads(count, function):
    results = [None] * count

    def run(number):
        try:
            results[number] = function(number)
        except (NoResponse, OSError) as error:
            results[number] = error
    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    return threads, results


class Validation(Case):
    def test_a_get_never_joins_the_validation_of_a_head(self):
        go, asked = threading.Event(), threading.Event()

        def page(exchange):
            if exchange.request.method == "HEAD":
                asked.set()
                exchange.wait(go)
                return fresh(b"second")
            return fresh(b"first" if origin.count() < 3 else b"second", seconds=1)
        origin = Origin(self, {"/page": page})
        encore = self.encore(admission={"policy": "always"})
        get(encore.port, origin.url("/page"))
        eventually(lambda: "; hit" not in (field(get(encore.port, origin.url("/page"),
                   fields=[("Cache-Control", "only-if-cached")]), "Cache-Status") or ""), "stale")
        threads, heads = in_threads(1, lambda _: get(encore.port, origin.url("/page"),
                                                     method="HEAD"))
        self.assertTrue(asked.wait(60))
        answer = get(encore.port, origin.url("/page"))
        self.assertEqual(200, answer.status)
        self.assertIn(answer.body, (b"first", b"second"))
        go.set()
        threads[0].join()
        self.assertEqual(200, heads[0].status)


class BadRequests(Case):
    def test_a_bad_request_of_one_does_not_send_the_others_to_the_origin(self):
        for status in ("400 Bad Request", "431 Too Large"):
            with self.subTest(status):
                self.others_still_wait_for_one_another(status)

    def others_still_wait_for_one_another(self, status):
        go = threading.Event()

        def page(exchange):
            if "x-bad" in dict(exchange.request.fields):
                return response(b"bad", status)
            exchange.wait(go)
            return fresh(b"page")
        origin = Origin(self, {"/page": page})
        encore = self.encore(admission={"policy": "always"})
        bad = get(encore.port, origin.url("/page"), fields=[("X-Bad", "1")])
        self.assertEqual(status.split()[0], str(bad.status))
        received = "encore_client_received_bytes_total"
        before = encore.metrics()[received]
        threads, results = in_threads(8, lambda _: get(encore.port, origin.url("/page")))
        least = 8 * len(f"GET {origin.url('/page')} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n")
        eventually(lambda: encore.metrics()[received] - before >= least, "all have asked")
        go.set()
        for thread in threads:
            thread.join()
        self.assertEqual([b"page"] * 8, [answer.body for answer in results])
        self.assertEqual(2, origin.count())


class Silence(Case):
    def test_who_waits_for_a_silent_leader_asks_once_for_all_who_do(self):
        go = threading.Event()

        def page(exchange):
            if origin.count() == 1:
                exchange.wait(go)
            return fresh(b"page")
        origin = Origin(self, {"/page": page})
        encore = self.encore(timeouts={"collapse": "300ms"})
        leader = Client(encore.port)
        self.addCleanup(leader.close)
        leader.request(origin.url("/page"))
        eventually(lambda: origin.count() == 1, "the leader asks")
        threads, results = in_threads(8, lambda _: get(encore.port, origin.url("/page")))
        for thread in threads:
            thread.join()
        self.assertEqual([b"page"] * 8, [answer.body for answer in results])
        # Both workers may check at the same time.
        self.assertLessEqual(origin.count(), 3)
        go.set()
        self.assertEqual(b"page", leader.read_response().body)

    def test_who_waited_in_vain_again_asks_for_itself(self):
        go = threading.Event()

        def page(exchange):
            if origin.count() <= 2:
                exchange.wait(go)
            return fresh(b"page")
        origin = Origin(self, {"/page": page})
        encore = self.encore(timeouts={"collapse": "300ms"}, workers={"count": 1})
        threads, results = in_threads(6, lambda _: get(encore.port, origin.url("/page")))
        eventually(lambda: sum(answer is not None for answer in results) >= 4,
                   "all but the two that were asked first are answered")
        go.set()
        for thread in threads:
            thread.join()
        self.assertEqual([b"page"] * 6, [answer.body for answer in results])


class Ranges(Case):
    def test_overlapping_ranges_of_a_body_that_still_comes_are_answered(self):
        body = os.urandom(3_000_000)
        go, started = threading.Event(), threading.Event()

        def page(exchange):
            answer = fresh(body)
            exchange.send(answer[:200_000])
            started.set()
            exchange.wait(go)
            exchange.send(answer[200_000:])
        origin = Origin(self, {"/page": page})
        # Too large to be stored: what all readers have passed is let go.
        encore = self.encore(admission={"policy": "always"}, cache={"max_object": "1MiB"})
        threads, results = in_threads(4, lambda n: get(
            encore.port, origin.url("/page"),
            fields=[("Range", "bytes=0-1999999,1000000-2499999")] if n else []))
        self.assertTrue(started.wait(60))
        eventually(lambda: encore.metrics()["encore_client_connections"] >= 4, "all are there")
        go.set()
        for thread in threads:
            thread.join()
        for answer in results:
            self.assertIn(getattr(answer, "status", answer), (200, 206))
            if answer.status == 200:
                self.assertEqual(body, answer.body)
            else:
                self.assertIn(body[1000000:2500000], answer.body)
        self.assertEqual(200, encore.admin("/healthz")[0])


class Races(Case):
    def test_who_joins_while_another_leaves_is_answered(self):
        # Each URL is requested, left immediately, and requested again while the proxy handles the
        # leaving.
        def page(exchange):
            time.sleep(0.002)  # so that there is something to join
            return fresh(b"here", seconds=0)
        origin = Origin(self, default=page)
        encore = self.encore(cache={"memory": "64MiB", "heuristic_fraction": 0.0})

        def run(number):
            for step in range(60):
                url = origin.url(f"/{step % 7}")
                if (number + step) % 2:
                    client = Client(encore.port)
                    client.request(url)
                    client.reset()
                    continue
                answer = get(encore.port, url)
                if answer.body != b"here":
                    return answer
            return "done"
        threads, results = in_threads(8, run)
        for thread in threads:
            thread.join()
        self.assertEqual(["done"] * 8, results)


def condition_of(request):
    return dict(request.fields).get("if-none-match")


class Stored(Case):
    """Stored responses that each request validates: requests meanwhile wait until it is there."""

    BODY = os.urandom(300_000)

    def origin_of(self, first=None):
        """An origin whose first response is that of `first`, and all others come immediately."""
        self.go, self.begun = threading.Event(), threading.Event()
        self.addCleanup(self.go.set)

        def page(exchange):
            if condition_of(exchange.request) == '"a"':
                return response(status="304 Not Modified", Content_Length=None, ETag='"a"',
                                Cache_Control="no-cache")
            whole = response(self.BODY, ETag='"a"', Cache_Control="no-cache")
            if len(self.asked_whole()) > 1:
                return whole
            return (first or self.in_two)(exchange, whole)
        self.origin = Origin(self, {"/page": page})
        return self.origin

    def in_two(self, exchange, whole):
        exchange.send(whole[:100_000])
        self.begun.set()
        exchange.wait(self.go)
        exchange.send(whole[100_000:])

    def asked_whole(self):
        return [r for r in self.origin.requests if condition_of(r) is None]

    def first(self, encore, fields=()):
        """Returns the first client, once it has the head: then the rules for the response are
        known."""
        client = Client(encore.port)
        self.addCleanup(client.close)
        client.request(self.origin.url("/page"), fields=fields)
        self.assertTrue(select.select([client.sock], [], [], 60)[0])
        return client

    def end_of(self, first):
        """The first gets what is left."""
        self.go.set()
        self.assertTrue(self.BODY == first.read_response().body)

    def follow(self, encore, count, fields=(), beside=1):
        """So many who ask behind the head, with so many others there."""
        followers = in_threads(count, lambda n: get(encore.port, self.origin.url("/page"),
                                                    fields=fields))
        eventually(lambda: encore.metrics()["encore_client_connections"] >= beside + count,
                   "all are there")
        return followers

    def all_of(self, *groups):
        for threads, results in groups:
            for thread in threads:
                thread.join()
            for answer in results:
                self.assertEqual(200, getattr(answer, "status", answer))
                self.assertTrue(self.BODY == answer.body)

    def test_it_is_fetched_once_whoever_asks_before_its_head_or_behind(self):
        origin = self.origin_of()
        encore = self.encore(admission={"policy": "always"})
        before = in_threads(6, lambda _: get(encore.port, origin.url("/page")))
        self.assertTrue(self.begun.wait(60))
        behind = self.follow(encore, 6, beside=6)
        # They have received the head, and wait.
        self.assertEqual(1, origin.count())
        self.go.set()
        self.all_of(before, behind)
        self.assertEqual(1, len(self.asked_whole()))
        self.assertEqual(12, origin.count())
        # A client has its answer a moment before it is counted.
        eventually(lambda: encore.outcomes()["revalidated"] == 11, "the others validated")

    def test_who_demands_that_the_origin_is_asked_waits_too(self):
        self.origin_of()
        encore = self.encore(admission={"policy": "always"})
        first = self.first(encore)
        others = self.follow(encore, 3, fields=[("Cache-Control", "no-cache")])
        self.end_of(first)
        self.all_of(others)
        self.assertEqual(1, len(self.asked_whole()))

    def test_it_is_stored_for_those_who_wait_though_the_first_has_left(self):
        self.origin_of()
        encore = self.encore(admission={"policy": "always"},
                             cache={"background_finish": "0B"})
        first = self.first(encore)
        others = self.follow(encore, 4)
        first.reset()
        eventually(lambda: encore.outcomes().get("client-aborted"), "the first has left")
        self.go.set()
        self.all_of(others)
        self.assertEqual(1, len(self.asked_whole()))

    def test_each_asks_where_it_breaks_off(self):
        def broken(exchange, whole):
            exchange.send(whole[:100_000])
            self.begun.set()
            exchange.wait(self.go)
            exchange.keep = False
        self.origin_of(broken)
        encore = self.encore(admission={"policy": "always"})
        self.first(encore)
        others = self.follow(encore, 4)
        self.go.set()
        self.all_of(others)

    def test_each_asks_as_soon_as_it_will_not_be_stored(self):
        others_wait = threading.Event()

        def endless(exchange, whole):
            exchange.send(response(Content_Length=None, Transfer_Encoding="chunked", ETag='"a"',
                                   Cache_Control="no-cache") + b"1000\r\n" + bytes(4096) + b"\r\n")
            self.begun.set()
            exchange.wait(others_wait)
            exchange.send(b"100000\r\n" + bytes(1 << 20) + b"\r\n")
            exchange.wait(self.go)
            exchange.send(b"0\r\n\r\n")
        self.origin_of(endless)
        encore = self.encore(admission={"policy": "always"}, cache={"max_object": "512KiB"},
                             timeouts={"collapse": "0s"})
        first = self.first(encore)
        others = self.follow(encore, 4)
        others_wait.set()
        self.all_of(others)  # while the first is still on its way
        # Nor does anybody wait from now on, to find that out again.
        again = get(encore.port, self.origin.url("/page"))
        self.assertTrue(self.BODY == again.body)
        self.go.set()
        self.assertEqual(4096 + (1 << 20), len(first.read_response().body))

    def test_who_has_waited_long_enough_asks(self):
        self.origin_of()
        encore = self.encore(admission={"policy": "always"}, timeouts={"collapse": "300ms"})
        first = self.first(encore)
        others = in_threads(3, lambda _: get(encore.port, self.origin.url("/page")))
        self.all_of(others)  # while the first is still on its way
        self.end_of(first)

    def test_who_asks_behind_a_purge_waits_for_nothing_from_before(self):
        origin = self.origin_of()
        encore = self.encore(admission={"policy": "always"}, timeouts={"collapse": "0s"})
        first = self.first(encore)
        self.assertEqual(200, encore.admin(f"/purge?url={origin.url('/page')}", "POST")[0])
        answer = get(encore.port, origin.url("/page"))  # while the first is still on its way
        self.assertTrue(self.BODY == answer.body)
        self.end_of(first)

    def test_what_was_asked_for_before_a_purge_is_waited_for_by_nobody_behind_it(self):
        # A validation of a stored response is in no table; its response is a new one.
        asked = threading.Event()

        def page(exchange):
            whole = response(self.BODY, ETag=f'"{origin.count()}"', Cache_Control="no-cache")
            if origin.count() != 2:
                return whole
            asked.set()
            exchange.wait(purged)
            self.in_two(exchange, whole)
        purged = threading.Event()
        self.go, self.begun = threading.Event(), threading.Event()
        self.addCleanup(self.go.set)
        origin = self.origin = Origin(self, {"/page": page})
        encore = self.encore(admission={"policy": "always"}, timeouts={"collapse": "0s"})
        get(encore.port, origin.url("/page"))
        client = Client(encore.port)
        self.addCleanup(client.close)
        client.request(origin.url("/page"))
        self.assertTrue(asked.wait(60))
        self.assertEqual(200, encore.admin(f"/purge?url={origin.url('/page')}", "POST")[0])
        purged.set()
        self.assertTrue(self.begun.wait(60))
        client.read_head()  # so that it is known to be there
        answer = get(encore.port, origin.url("/page"))  # while the other is still on its way
        self.assertTrue(self.BODY == answer.body)
        self.go.set()
        self.assertTrue(self.BODY == client.read_exactly(len(self.BODY)))

    def test_one_who_came_before_makes_nobody_of_a_crowd_fetch_for_himself(self):
        # With the first request nothing is stored; with the crowd's it is.
        origin = self.origin_of(lambda exchange, whole: exchange.send(whole))
        encore = self.encore()
        get(encore.port, origin.url("/page"))

        def page(exchange):
            if condition_of(exchange.request):
                return response(status="304 Not Modified", Content_Length=None, ETag='"a"',
                                Cache_Control="no-cache")
            self.in_two(exchange, response(self.BODY, ETag='"a"', Cache_Control="no-cache"))
        origin.routes["/page"] = page
        before = in_threads(6, lambda _: get(encore.port, origin.url("/page")))
        self.assertTrue(self.begun.wait(60))
        eventually(lambda: encore.metrics()["encore_client_connections"] >= 6, "all are there")
        self.go.set()
        self.all_of(before)
        self.assertEqual(2, len(self.asked_whole()))

    def test_others_want_another_variant_and_do_not_wait(self):
        def english(exchange, whole):
            head, body = whole.split(b"\r\n\r\n", 1)
            self.in_two(exchange, head + b"\r\nVary: X-Lang\r\n\r\n" + body)
        self.origin_of(english)
        encore = self.encore(admission={"policy": "always"}, timeouts={"collapse": "0s"})
        first = self.first(encore, fields=[("X-Lang", "en")])
        answer = get(encore.port, self.origin.url("/page"), fields=[("X-Lang", "de")])  # meanwhile
        self.assertTrue(self.BODY == answer.body)
        self.end_of(first)


class Ends(Case):
    def test_bytes_behind_a_response_end_its_connection(self):
        poison = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
        origin = Origin(self, {
            "/empty": b"HTTP/1.1 204 No Content\r\n\r\n" + poison,
            "/zero": response(b"") + poison, "/length": response(b"body") + poison,
            "/chunked": chunked(b"body", b"of two") + poison}, default=response(b"good"))
        encore = self.encore(workers={"count": 1})
        for path in ("/empty", "/zero", "/length", "/chunked"):
            before = origin.connections
            self.assertNotIn(b"poison", get(encore.port, origin.url(path)).body)
            self.assertEqual(b"good", get(encore.port, origin.url("/other")).body)
            self.assertGreater(origin.connections, before + (path == "/empty"))

    def test_a_background_validation_that_is_not_stored_is_not_read_to_its_end(self):
        ended = threading.Event()

        def page(exchange):
            if origin.count() == 1:
                return response(b"old", Cache_Control="max-age=0, stale-while-revalidate=600",
                                ETag='"a"')
            exchange.send(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\n")
            try:
                while not exchange.origin.stopped:
                    exchange.send(b"x" * 65536)
            except Exception:
                ended.set()
                raise
        origin = Origin(self, {"/page": page})
        encore = self.encore(admission={"policy": "always"})
        get(encore.port, origin.url("/page"))
        self.assertEqual(b"old", get(encore.port, origin.url("/page")).body)
        self.assertTrue(ended.wait(60), "the origin still sends")

    def test_an_unfinished_body_is_no_whole_one_when_a_drain_reaches_its_limit(self):
        go = threading.Event()

        def page(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nbegin")
            exchange.wait(go)
        origin = Origin(self, {"/page": page})
        self.addCleanup(go.set)
        encore = self.encore(timeouts={"drain": "1s"}, workers={"count": 4})
        clients = []
        for _ in range(12):  # on several workers, all readers of one transfer
            client = Client(encore.port)
            self.addCleanup(client.close)
            client.request(origin.url("/page"), version="HTTP/1.0")
            clients.append(client)
        for client in clients:
            client.read_head()
            self.assertEqual(b"begin", client.read_exactly(5))
        encore.stop()
        for client in clients:
            with self.assertRaises(ConnectionError):
                while client.sock.recv(65536):
                    pass
                self.fail("an orderly end: the body looks whole")


if __name__ == "__main__":
    unittest.main()
