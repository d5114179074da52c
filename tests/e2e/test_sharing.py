"""Two concurrent users on one URL: the response for one of them is given to the other only if the
cache alone would give it to him."""

import email.utils
import threading
import unittest

from client import Client, NoResponse, field, get
from harness import Case, eventually, free_port
from origin import Origin, chunked, fresh, response
from test_joining import in_threads


def user_of(request):
    return dict(request.fields).get("cookie", "nobody").partition("=")[2] or "nobody"


def personal(request, **fields):
    """A page that says whose it is, and a cookie that is his alone."""
    user = user_of(request)
    return response(f"page of {user}", Date=email.utils.formatdate(usegmt=True), X_User=user,
                    Set_Cookie=f"session={user}", **fields)


class Crowd(Case):
    """Users who ask for one page while its first answer is held back."""

    def run_crowd(self, page, count=6, prime=False, request_fields=None, cookies=True, **sections):
        """Their answers, by user, and the origin. `page` makes the answer to a request."""
        go, held = threading.Event(), threading.Event()

        def route(exchange):
            if dict(exchange.request.fields).get("x-prime"):
                return page(exchange.request)
            answer = page(exchange.request)
            held.set()
            exchange.wait(go)
            return answer
        origin = Origin(self, default=route)
        encore = self.encore(admission={"policy": "always"}, **sections)
        url = origin.url("/page")
        if prime:
            get(encore.port, url, fields=[("X-Prime", "1")])
            eventually(lambda: get(encore.port, url, fields=[("Cache-Control", "only-if-cached")])
                       .status == 504, "it is stale")
        name = 'encore_client_received_bytes_total'
        before = encore.metrics()[name]
        more = request_fields or (lambda user: [])

        def ask(number):
            user = f"user{number}"
            fields = [("Cookie", f"id={user}")] if cookies else []
            with Client(encore.port) as client:
                client.request(url, fields=fields + more(user))
                return client.read_response()
        threads, answers = in_threads(count, ask)
        self.assertTrue(held.wait(60))
        # Every request has been read, so that each one waits for the held one or asks for itself.
        least = count * len(f"GET {url} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n")
        eventually(lambda: encore.metrics()[name] - before >= least, "all have asked")
        go.set()
        for thread in threads:
            thread.join()
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return {f"user{n}": answer for n, answer in enumerate(answers)}, origin, encore

    def check_personal(self, answers):
        for user, answer in answers.items():
            self.assertEqual((200, f"page of {user}".encode(), user, f"session={user}"),
                             (answer.status, answer.body, field(answer, "X-User"),
                              field(answer, "Set-Cookie")), field(answer, "Cache-Status"))


class Responses(Crowd):
    def test_what_has_to_be_validated_is_shared_with_nobody(self):
        for fields in ({"ETag": '"a"'}, {"ETag": '"a"', "Cache_Control": "no-cache"},
                       {"ETag": '"a"', "Cache_Control": "max-age=0"},
                       {"Last_Modified": "Sun, 06 Nov 1994 08:49:37 GMT"},
                       {"Cache_Control": "max-age=600, no-cache", "ETag": '"a"'},
                       {"Cache_Control": "private, max-age=600"}, {"Cache_Control": "no-store"}):
            for collapse in (True, False):
                with self.subTest(fields, collapse=collapse):
                    answers, _, _ = self.run_crowd(lambda r, f=fields: personal(r, **f),
                                                   cache={"collapse": collapse})
                    self.check_personal(answers)

    def test_a_cookie_set_for_one_is_never_set_for_another(self):
        for policy in ("strip", "refuse", "store"):
            for marked in ("max-age=600", "public, max-age=600", "s-maxage=600"):
                with self.subTest(policy, marked=marked):
                    numbers = iter(range(1000))
                    answers, origin, _ = self.run_crowd(
                        lambda r, n=numbers, m=marked: response(
                            "page", Cache_Control=m, Date=email.utils.formatdate(usegmt=True),
                            Set_Cookie=f"session={next(n)}"), cookies=False,
                        cache={"set_cookie": policy})
                    cookies = [field(a, "Set-Cookie") for a in answers.values()]
                    given = [c for c in cookies if c]
                    self.assertEqual(len(given), len(set(given)), cookies)
                    self.assertEqual(origin.count(), len(given))
                    self.assertEqual({b"page"}, {a.body for a in answers.values()})
                    if policy != "refuse":
                        self.assertEqual(1, origin.count())

    def test_fields_that_private_names_reach_the_one_who_asked_alone(self):
        numbers = iter(range(1000))
        answers, origin, _ = self.run_crowd(
            lambda r: fresh(b"page", X_User=str(next(numbers)), X_All="yes").replace(
                b"max-age=600", b'max-age=600, private="x-user"'))
        self.assertEqual(1, origin.count())
        self.assertEqual(["0"], [field(a, "X-User") for a in answers.values() if field(a, "X-User")])
        self.assertEqual({"yes"}, {field(a, "X-All") for a in answers.values()})

    def test_who_wants_it_validated_does_not_wait_for_another(self):
        answers, origin, _ = self.run_crowd(
            lambda r: fresh(f"page of {dict(r.fields)['x-user']}".encode()),
            request_fields=lambda user: [("Cache-Control", "no-cache"), ("X-User", user)])
        for user, answer in answers.items():
            self.assertEqual(f"page of {user}".encode(), answer.body)

    def test_what_is_shared_is_as_old_as_it_is(self):
        answers, origin, _ = self.run_crowd(lambda r: fresh(b"page", Age="7", ETag='"a"'),
                                            request_fields=lambda user: [] if user < "user3" else [
                                                ("If-None-Match", '"a"')])
        self.assertEqual(1, origin.count())
        for answer in answers.values():
            self.assertIn(field(answer, "Age"), ("7", "8", "9"), answer)

    def test_a_client_of_1_0_gets_no_chunks(self):
        origin = Origin(self, default=chunked(b"page", trailers="X-Sum: 1\r\n"))
        encore = self.encore(admission={"policy": "always"})
        for _ in range(2):
            with Client(encore.port) as client:
                client.request(origin.url("/page"), version="HTTP/1.0",
                               fields=[("TE", "trailers"), ("Connection", "TE")])
                answer = client.read_response()
            self.assertEqual((b"page", None), (answer.body, field(answer, "Transfer-Encoding")))

    def test_what_is_fresh_is_shared_by_all(self):
        answers, origin, _ = self.run_crowd(lambda r: fresh(b"page"))
        self.assertEqual(1, origin.count())
        self.assertEqual({b"page"}, {a.body for a in answers.values()})

    def test_what_is_not_shared_does_not_make_them_wait_one_after_the_other(self):
        waiting = threading.Barrier(4)

        def page(exchange):
            if exchange.request.target == "/page":
                if dict(exchange.request.fields).get("cookie") != "id=first":
                    waiting.wait(60)  # the others are at the origin together
                return personal(exchange.request, ETag='"a"')
            return response(b"")
        origin = Origin(self, default=page)
        encore = self.encore(admission={"policy": "never"})
        get(encore.port, origin.url("/page"), fields=[("Cookie", "id=first")])
        threads, answers = in_threads(4, lambda n: get(
            encore.port, origin.url("/page"), fields=[("Cookie", f"id=user{n}")]))
        for thread in threads:
            thread.join()
        self.check_personal({f"user{n}": a for n, a in enumerate(answers)})


class Validations(Crowd):
    def page(self, **confirmed):
        def route(request):
            fields = dict(request.fields)
            user = user_of(request)
            if fields.get("if-none-match"):
                named = {"ETag": '"a"', "Set_Cookie": f"session={user}", "X_User": user, **confirmed}
                lines = "".join(f"{name.replace('_', '-')}: {value}\r\n"
                                for name, value in named.items())
                return f"HTTP/1.1 304 Not Modified\r\n{lines}\r\n".encode()
            return fresh(b"page", seconds=1, ETag='"a"')
        return route

    def test_a_validation_that_others_would_have_to_repeat_is_shared_with_nobody(self):
        for said in ("max-age=0", "no-cache", "private, max-age=600", "no-store"):
            for collapse in (True, False):
                with self.subTest(said, collapse=collapse):
                    answers, _, _ = self.run_crowd(self.page(Cache_Control=said), prime=True,
                                                   cache={"collapse": collapse})
                    for user, answer in answers.items():
                        self.assertEqual(b"page", answer.body)
                        self.assertIn(field(answer, "Set-Cookie"), (f"session={user}", None))
                        self.assertIn(field(answer, "X-User"), (user, None))

    def test_without_collapsing_each_validates_for_itself(self):
        answers, origin, _ = self.run_crowd(self.page(Cache_Control="max-age=0"), prime=True,
                                            cache={"collapse": False})
        self.assertEqual(len(answers) + 1, origin.count())

    def test_a_validation_that_made_it_fresh_is_shared_without_the_cookie(self):
        answers, origin, _ = self.run_crowd(self.page(Cache_Control="max-age=600"), prime=True,
                                            cookies=False)
        self.assertEqual(2, origin.count())
        cookies = [field(a, "Set-Cookie") for a in answers.values()]
        self.assertEqual(1, len([c for c in cookies if c]), cookies)


class Variants(Crowd):
    def test_those_who_want_another_variant_share_one_of_their_own(self):
        def page(request):
            language = dict(request.fields)["x-lang"]
            return fresh(language.encode(), Vary="X-Lang")
        answers, origin, _ = self.run_crowd(
            page, count=20, cookies=False,
            request_fields=lambda user: [("X-Lang", "de" if user[-1] in "02468" else "en")])
        for user, answer in answers.items():
            self.assertEqual(b"de" if user[-1] in "02468" else b"en", answer.body)
        self.assertEqual(2, origin.count())

    def test_a_variant_that_is_validated_while_another_is_fetched(self):
        # Both kinds of proxy, with and without collapsing: it once called itself without end.
        def page(exchange):
            coding = dict(exchange.request.fields).get("accept-encoding", "")
            tag = f'"{coding}"'
            if dict(exchange.request.fields).get("if-none-match") == tag:
                return f"HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n".encode()
            return response(coding, Vary="Accept-Encoding", Cache_Control="no-cache", ETag=tag)
        origin = Origin(self, default=page)
        for collapse in (True, False):
            ports = [free_port(), free_port()]
            encore = self.encore(
                listen=[{"address": f"127.0.0.1:{ports[0]}", "mode": "forward"},
                        {"address": f"127.0.0.1:{ports[1]}", "mode": "reverse"}],
                origin=[{"servers": [origin.url("")]}], admission={"policy": "always"},
                cache={"collapse": collapse})

            def run(number):
                coding = ("gzip", "br", "zstd")[number % 3]
                with Client(ports[number % 2]) as client:
                    for step in range(60):
                        answer = client.ask(origin.url(f"/{step // 20}"),
                                            fields=[("Accept-Encoding", coding)])
                        if (answer.status, answer.body) != (200, coding.encode()):
                            return answer
                return "done"
            threads, results = in_threads(8, run)
            for thread in threads:
                thread.join()
            self.assertEqual(["done"] * 8, results)


    def two_languages(self, route):
        """An origin that answers by X-Lang, a proxy in which who waits for another waits for ever,
        and what begins to ask it."""
        origin = Origin(self, default=lambda x: route(x, dict(x.request.fields).get("x-lang")))
        encore = self.encore(admission={"policy": "always"}, workers={"count": 1},
                             timeouts={"collapse": "0s"})

        def begin(language):
            client = Client(encore.port)
            self.addCleanup(client.close)
            client.request(origin.url("/page"), fields=[("X-Lang", language)])
            return client
        return origin, encore, begin

    def test_variants_on_their_way_at_once_reach_those_who_asked_for_them(self):
        go = threading.Event()

        def page(exchange, language):
            answer = fresh(language.encode() * 1000, Vary="X-Lang")
            exchange.send(answer[:-1000])
            exchange.wait(go)
            return answer[-1000:]
        origin, _, begin = self.two_languages(page)
        readers = []
        for language in ("de", "en", "en", "de", "en", "fr"):
            readers.append((language, begin(language)))
            # Its head comes while all the bodies before it are held.
            self.assertEqual(200, readers[-1][1].read_head().status)
        go.set()
        for language, client in readers:
            self.assertEqual(language.encode() * 1000, client.read_exactly(2000))
        self.assertEqual(3, origin.count())

    def test_a_variant_does_not_wait_for_another_that_is_validated(self):
        asked, go = threading.Event(), threading.Event()

        def page(exchange, language):
            tag = f'"{language}"'
            if dict(exchange.request.fields).get("if-none-match") != tag:
                return fresh(language.encode(), Vary="X-Lang", ETag=tag)
            if language == "de":
                asked.set()
                exchange.wait(go)
            return f"HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n".encode()
        origin, encore, begin = self.two_languages(page)
        for language in ("de", "en"):
            self.assertEqual(language.encode(), begin(language).read_response().body)
        encore.admin(f"/purge?soft=1&url={origin.url('/page')}", "POST")
        held = begin("de")
        self.assertTrue(asked.wait(60))
        self.assertEqual(b"en", begin("en").read_response().body)
        go.set()
        self.assertEqual(b"de", held.read_response().body)
        self.assertEqual(4, origin.count())

    def test_a_validation_that_shows_another_vary_is_shared_by_its_variant_alone(self):
        def page(request):
            fields = dict(request.fields)
            if fields.get("if-none-match"):
                return (b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nVary: X-Lang\r\n'
                        b"Cache-Control: max-age=600\r\n\r\n")
            if fields.get("x-prime"):
                return fresh(b"primed", seconds=1, ETag='"a"')
            return fresh(fields["x-lang"].encode(), Vary="X-Lang")
        answers, _, _ = self.run_crowd(
            page, count=8, prime=True, cookies=False,
            request_fields=lambda user: [("X-Lang", "de" if user[-1] in "0246" else "en")])
        bodies = {language: {answers[f"user{n}"].body for n in range(first, 8, 2)}
                  for first, language in enumerate(("de", "en"))}
        # The stored variant is that of the first client; the others requested theirs.
        self.assertIn(bodies, ({"de": {b"primed"}, "en": {b"en"}},
                               {"de": {b"de"}, "en": {b"primed"}}))


class Failures(Case):
    def test_what_never_was_fresh_is_not_served_when_its_origin_is_gone(self):
        origin = Origin(self, {"/tag": response(b"tag", ETag='"a"'),
                               "/zero": fresh(b"zero", seconds=0, ETag='"a"'),
                               "/says": response(b"says", ETag='"a"', Cache_Control="max-age=0, "
                                                 "stale-if-error=600")})
        encore = self.encore(admission={"policy": "always"})
        for path in ("/tag", "/zero", "/says"):
            get(encore.port, origin.url(path))
        origin.stop()
        eventually(lambda: get(encore.port, origin.url("/other")).status == 502, "it has gone")
        self.assertEqual([502, 502, 200], [get(encore.port, origin.url(path)).status
                                           for path in ("/tag", "/zero", "/says")])

    def test_a_connection_that_breaks_as_it_is_written_to_is_answered_once(self):
        # The request is longer than what the socket takes, and the origin has gone before.
        origin = Origin(self, default=lambda exchange: exchange.reset())
        encore = self.encore()

        def run(number):
            with Client(encore.port) as client:
                answer = client.ask(origin.url(f"/{number % 2}"), method="GET",
                                    fields=[("X-Long", "x" * 20000)])
                return answer.status
        threads, results = in_threads(8, run)
        for thread in threads:
            thread.join()
        self.assertEqual([502] * 8, results)


if __name__ == "__main__":
    unittest.main()
