"""One logged-in user among anonymous readers: a response that is for one client alone sends only those
to the origin that have the same credentials; the others wait for a response of their own kind."""

import itertools
import threading

from client import Client, field, get
from harness import Case, eventually
from origin import Origin, fresh, response
from test_joining import in_threads


def cookie_of(request):
    return dict(request.fields).get("cookie")


def private(text, **fields):
    return response(text, Cache_Control="private, max-age=600", **fields)


class Apart(Case):
    def start_with(self, page, **sections):
        """The origin answers by `page`, but holds the first request of the user "slow" until
        release()."""
        self.go, self.held = threading.Event(), threading.Event()

        def route(exchange):
            if cookie_of(exchange.request) == "id=slow":
                self.held.set()
                exchange.wait(self.go)
            return page(exchange)
        self.origin = Origin(self, default=route)
        self.proxy = self.encore(admission={"policy": "always"}, **sections)
        self.url = self.origin.url("/page")

    def ask(self, cookie=None, **options):
        fields = [("Cookie", cookie)] if cookie else []
        return get(self.proxy.port, self.url, fields=fields, **options)

    def received(self):
        return self.proxy.metrics()["encore_client_received_bytes_total"]

    def request_bytes(self, cookie=None):
        """The size of the request that ask(cookie) sends."""
        fields = f"Cookie: {cookie}\r\n" if cookie else ""
        return len(f"GET {self.url} HTTP/1.1\r\nHost: {self.origin.authority}\r\n{fields}\r\n")

    def user_first(self, crowd):
        """The slow user asks, then each of `crowd` (cookies, or None); all wait before the user's
        response comes. Returns his answer and theirs."""
        before = self.received()
        user, users = in_threads(1, lambda _: self.ask("id=slow"))
        self.assertTrue(self.held.wait(60))
        threads, answers = in_threads(len(crowd), lambda n: self.ask(crowd[n]))
        least = sum(map(self.request_bytes, ["id=slow", *crowd]))
        eventually(lambda: self.received() - before >= least, "all have asked")
        self.go.set()
        for thread in user + threads:
            thread.join()
        for answer in users + answers:
            if isinstance(answer, Exception):
                raise answer
        return users[0], answers


def by_cookie(exchange):
    """A page for everybody, and one of his own for each who has a cookie."""
    cookie = cookie_of(exchange.request)
    return private(f"page of {cookie}") if cookie else fresh(b"page for all")


def session_by_cookie(exchange):
    """A page for everybody, and a session for each who has a cookie."""
    cookie = cookie_of(exchange.request)
    return fresh(b"page", Set_Cookie="session=1") if cookie else fresh(b"page for all")


class Responses(Apart):
    def test_the_others_share_one_response_of_their_own(self):
        self.start_with(by_cookie)
        user, answers = self.user_first([None] * 20)
        self.assertEqual(b"page of id=slow", user.body)
        self.assertEqual({b"page for all"}, {answer.body for answer in answers})
        self.assertEqual(2, self.origin.count())

    def test_whatever_keeps_the_users_response_from_them(self):
        for said in ({"Cache_Control": "no-store"}, {"Cache_Control": "no-cache"},
                     {"Cache_Control": "max-age=600", "Vary": "*"},
                     {"Cache_Control": "max-age=600", "Set_Cookie": "session=slow"},
                     {"Cache_Control": "private", "status": "403 No"}):
            with self.subTest(said):
                self.start_with(lambda exchange, s=said: response("page of a user", **s)
                                if cookie_of(exchange.request) else fresh(b"page for all"))
                user, answers = self.user_first([None] * 20)
                self.assertEqual(b"page of a user", user.body)
                self.assertEqual({b"page for all"}, {answer.body for answer in answers})
                self.assertEqual(2, self.origin.count())

    def test_two_users_cost_one_response_more(self):
        asked = threading.Event()

        def page(exchange):
            """The page for everybody comes when the second user has asked: else it may be his."""
            if cookie_of(exchange.request) == "id=2":
                asked.set()
            elif cookie_of(exchange.request) is None:
                exchange.wait(asked)
            return by_cookie(exchange)
        self.start_with(page)
        _, answers = self.user_first(["id=2"] + [None] * 20)
        self.assertEqual([b"page of id=2"] + [b"page for all"] * 20,
                         [answer.body for answer in answers])
        self.assertEqual(3, self.origin.count())

    def test_who_has_the_same_credentials_asks_at_once(self):
        together = threading.Barrier(4)
        self.start_with(by_cookie)
        waits = self.origin.default

        def route(exchange):
            if self.held.is_set():
                together.wait(60)  # the others are at the origin together
                return by_cookie(exchange)
            return waits(exchange)
        self.origin.default = route
        _, answers = self.user_first(["id=slow"] * 4)
        self.assertEqual({b"page of id=slow"}, {answer.body for answer in answers})
        self.assertEqual(5, self.origin.count())

    def test_while_it_is_remembered_nobody_waits_for_a_user(self):
        self.start_with(by_cookie)
        self.ask("id=first")
        user, users = in_threads(1, lambda _: self.ask("id=slow"))
        self.assertTrue(self.held.wait(60))
        self.assertEqual(b"page for all", self.ask().body)  # and the user is still waiting
        self.assertIn("; hit", field(self.ask(), "Cache-Status"))
        self.go.set()
        user[0].join()
        self.assertEqual(b"page of id=slow", users[0].body)

    def test_and_those_without_credentials_still_wait_for_one_another(self):
        for page in (by_cookie, session_by_cookie):
            with self.subTest(page=page.__name__):
                self.anonymous_wait_behind_a_user(page)

    def anonymous_wait_behind_a_user(self, page):
        self.start_with(page)
        self.ask("id=first")
        go, held = threading.Event(), threading.Event()

        def route(exchange):
            held.set()
            exchange.wait(go)
            return page(exchange)
        self.origin.default = route
        before = self.received()
        threads, answers = in_threads(20, lambda _: self.ask())
        self.assertTrue(held.wait(60))
        least = 20 * self.request_bytes()
        eventually(lambda: self.received() - before >= least, "all have asked")
        go.set()
        for thread in threads:
            thread.join()
        self.assertEqual({b"page for all"}, {answer.body for answer in answers})
        self.assertEqual(2, self.origin.count())

    def test_cookies_without_end_do_not_part_the_anonymous(self):
        self.start_with(by_cookie)
        with Client(self.proxy.port) as client:
            for number in range(2000):
                client.request(self.url, fields=[("Cookie", f"id={number}")])
                self.assertEqual(f"page of id={number}".encode(), client.read_response().body)
        _, answers = self.user_first([None] * 20)
        self.assertEqual({b"page for all"}, {answer.body for answer in answers})
        self.assertEqual(2002, self.origin.count())


class Validations(Apart):
    def test_a_304_for_one_user_leaves_the_others_one_of_their_own(self):
        numbers = itertools.count()

        def page(exchange):
            fields = dict(exchange.request.fields)
            if "if-none-match" in fields and cookie_of(exchange.request):
                return (b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n'
                        b"Cache-Control: private\r\n\r\n")
            if "if-none-match" in fields:
                return (b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n'
                        b"Cache-Control: max-age=600\r\n\r\n")
            return fresh(b"page for all", seconds=1 if next(numbers) == 0 else 600, ETag='"a"')
        self.start_with(page)
        self.ask()
        eventually(lambda: get(self.proxy.port, self.url,
                               fields=[("Cache-Control", "only-if-cached")]).status == 504, "stale")
        user, answers = self.user_first([None] * 20)
        self.assertEqual({b"page for all"}, {a.body for a in [user, *answers]})
        self.assertEqual(3, self.origin.count())
