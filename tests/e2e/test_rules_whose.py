"""[[rule]]: what one client gets by a rule is not there for another for whom it does not hold, and nobody
gets by a redirection what he would be refused."""

import signal
import ssl
import threading
import unittest

from client import Client, field, get
from harness import Case, CertificateAuthority, eventually, free_port
from origin import Origin, chunked, fresh, response


class Overridden(Case):
    """Responses that a rule stores against their origin's word, with another rule or none for other
    clients."""

    INSIDE, OUTSIDE = "127.0.0.2", "127.0.0.1"
    ALLOWED = [("Authorization", "Bearer a")]

    def ask(self, encore, url, source, **options):
        with Client(encore.port, source=source) as client:
            return client.ask(url, **options)

    def started(self, origin, words):
        listener = {"address": f"127.0.0.1:{free_port()}", "mode": "forward",
                    "purge_clients": ["127.0.0.1"]}
        # A request that waits for another waits until the test fails.
        return self.encore(listen=[listener], timeouts={"collapse": "1h"},
                           rule=[{"clients": self.INSIDE, "ignore": words, "fresh": "1h"}],
                           admission={"policy": "always"})

    def test_it_is_there_for_those_alone_for_whom_the_same_is_overridden(self):
        answers = {"private": {"Cache_Control": "private, max-age=60"},
                   "no-store": {"Cache_Control": "no-store"},
                   "vary": {"Vary": "X-Who", "Cache_Control": "max-age=60"},
                   "no-cache": {"Cache_Control": "no-cache"},
                   "set-cookie": {"Set_Cookie": "id=1", "Cache_Control": "max-age=60"},
                   "authorization": {"Cache_Control": "max-age=60"}}
        for word, fields in answers.items():
            with self.subTest(word):
                origin = Origin(self, default=lambda exchange, fields=fields: response(
                    b"%d" % exchange.origin.count(), **fields))
                encore = self.started(origin, [word])
                asked = self.ALLOWED if word == "authorization" else [("X-Who", "one")]
                for _ in range(2):
                    self.assertEqual(b"1", self.ask(encore, origin.url("/a"), self.INSIDE,
                                                    fields=asked).body)
                other = self.ask(encore, origin.url("/a"), self.OUTSIDE,
                                 fields=[("X-Who", "other")])
                self.assertEqual(b"2", other.body)
                # And theirs is not what those get who are inside.
                self.assertEqual(b"1", self.ask(encore, origin.url("/a"), self.INSIDE).body)

    def test_nobody_else_waits_for_it(self):
        go = threading.Event()

        def slow(exchange):
            number = exchange.origin.count()
            if number == 1:
                exchange.wait(go)
            return response(b"%d" % number, Cache_Control="private, max-age=60")
        origin = Origin(self, default=slow)
        encore = self.started(origin, ["private"])
        bodies = {}

        def inside():
            bodies["inside"] = self.ask(encore, origin.url("/a"), self.INSIDE).body
        thread = threading.Thread(target=inside)
        thread.start()
        eventually(lambda: origin.count() == 1, "the first has asked")
        self.assertEqual(b"2", self.ask(encore, origin.url("/a"), self.OUTSIDE).body)
        go.set()
        thread.join()
        self.assertEqual(b"1", bodies["inside"])

    def test_purges_bans_and_writes_find_it(self):
        origin = Origin(self, default=lambda exchange: response(
            b"%d" % exchange.origin.count(), Cache_Control="private"))
        encore = self.started(origin, ["private"])
        url = origin.url("/a?b=1")
        for _ in range(2):
            self.assertEqual(b"1", self.ask(encore, url, self.INSIDE).body)
        encore.admin("/purge?url=" + url, "POST")
        for _ in range(2):
            self.assertEqual(b"2", self.ask(encore, url, self.INSIDE).body)
        self.assertEqual(200, self.ask(encore, url, self.OUTSIDE, method="BAN",
                                       fields=[("X-Url", "b=1$")]).status)
        for _ in range(2):
            self.assertEqual(b"3", self.ask(encore, url, self.INSIDE).body)
        self.assertEqual(200, self.ask(encore, url, self.OUTSIDE, method="PURGE").status)
        for _ in range(2):
            self.assertEqual(b"4", self.ask(encore, url, self.INSIDE).body)
        self.ask(encore, url, self.OUTSIDE, method="POST", body=b"x")
        self.assertEqual(b"6", self.ask(encore, url, self.INSIDE).body)


class AskedOtherwise(Case):
    """Responses to requests that a rule changes are for those clients alone whose requests it
    changes."""

    INSIDE, OUTSIDE = "127.0.0.2", "127.0.0.1"

    def ask(self, encore, url, source, **options):
        with Client(encore.port, source=source) as client:
            return client.ask(url, **options)

    def page(self, exchange):
        """Says how it was asked, and that it is for all who ask so."""
        fields = dict(exchange.request.fields)
        asked = [exchange.request.target, *(fields.get(name, "") for name in
                                            ("x-group", "x-tenant", "authorization", "cookie"))]
        return fresh("|".join(asked).encode(), Vary="X-Group, X-Tenant")

    def test_each_gets_what_was_asked_for_as_he_asks(self):
        client = [("X-Group", "one"), ("X-Tenant", "t1"), ("Cookie", "lang=de; id=7")]
        for rule in ({"request_set": ["X-Group: staff"]}, {"request_add": ["X-Group: staff"]},
                     {"request_set": ["Authorization: Basic YTpi"]},
                     {"request_remove": ["X-Tenant"]}, {"add_prefix": "/inner"},
                     {"replace": ["/a=>/b"]}, {"key_query": "none", "origin_query": True},
                     {"cookies": "ignore"}, {"cookies": "key:lang"}):
            for first, second in ((self.INSIDE, self.OUTSIDE), (self.OUTSIDE, self.INSIDE)):
                with self.subTest(rule=rule, first=first):
                    origin = Origin(self, default=self.page)
                    encore = self.encore(rule=[{"clients": self.INSIDE, **rule}],
                                         admission={"policy": "always"})
                    url = origin.url("/a?b=1" if "key_query" in rule else "/a")
                    bodies = [self.ask(encore, url, who, fields=client).body
                              for who in (first, second, first, second)]
                    self.assertEqual(bodies[:2], bodies[2:])
                    self.assertEqual(2, origin.count())
                    if "key_query" not in rule:  # the requests are alike, but their keys differ
                        self.assertNotEqual(bodies[0], bodies[1])

    def test_listeners_are_told_apart(self):
        origin = Origin(self, default=self.page)
        ports = free_port(), free_port()
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{port}", "mode": "reverse"} for port in ports],
            origin=[{"servers": [origin.url("")]}], admission={"policy": "always"},
            rule=[{"listener": f"127.0.0.1:{ports[1]}", "request_set": ["X-Group: staff"]}])
        self.assertTrue(encore.port)
        for port, group in ((ports[1], b"staff"), (ports[0], b"")) * 2:
            with Client(port) as client:
                client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
                self.assertEqual(b"/a|" + group, client.read_response().body[:3 + len(group)])
        self.assertEqual(2, origin.count())

    def test_purges_and_writes_find_it(self):
        origin = Origin(self, default=lambda exchange: fresh(b"%d" % exchange.origin.count()))
        encore = self.encore(rule=[{"clients": self.INSIDE, "request_set": ["X-Group: staff"]}],
                             admission={"policy": "always"})
        url = origin.url("/a")
        for number, forget in ((1, None), (2, "purge"), (4, "POST")):
            if forget == "purge":
                encore.admin("/purge?url=" + url, "POST")
            elif forget:
                self.ask(encore, url, self.OUTSIDE, method="POST", body=b"x")
            for _ in range(2):
                self.assertEqual(b"%d" % number, self.ask(encore, url, self.INSIDE).body)

    def test_who_may_have_it_by_its_origin_alone_is_not_joined(self):
        go = threading.Event()

        def members(exchange):
            if ("authorization", "Bearer m") not in exchange.request.fields:
                return response(b"denied", "401 Unauthorized", Cache_Control="no-store")
            if dict(exchange.request.fields).get("if-none-match"):
                exchange.wait(go)
                return response(b"", "304 Not Modified", ETag='"1"', Cache_Control="max-age=60",
                                Content_Length=None)
            return response(b"secret", ETag='"1"', Cache_Control="max-age=60", Age="70")
        origin = Origin(self, default=members)
        encore = self.encore(admission={"policy": "always"}, timeouts={"collapse": "1h"},
                             rule=[{"clients": self.INSIDE, "authorization": "recheck",
                                    "stale_while_revalidate": "1h"}])
        member = {"fields": [("Authorization", "Bearer m")]}
        for _ in range(2):
            self.assertEqual(b"secret", self.ask(encore, origin.url("/a"), self.INSIDE,
                                                 **member).body)
        eventually(lambda: any("if-none-match" in dict(one.fields) for one in origin.requests),
                   "it is validated")
        for source in (self.OUTSIDE, self.INSIDE):
            self.assertEqual(401, self.ask(encore, origin.url("/a"), source).status)
        go.set()

    def test_a_permission_is_of_whom_the_origin_was_told(self):
        def members(exchange):
            if dict(exchange.request.fields).get("x-forwarded-for", "").startswith("10.0.0.1"):
                return fresh(b"for one")
            return response(b"no", "403 Forbidden", Cache_Control="no-store")
        origin = Origin(self, default=members)
        port = free_port()
        self.encore(listen=[{"address": f"127.0.0.1:{port}", "mode": "reverse",
                             "trusted_proxies": ["127.0.0.1"]}],
                    origin=[{"servers": [origin.url("")]}], workers={"count": 1},
                    rule=[{"authorization": "recheck"}], admission={"policy": "always"})
        for client, status in (("10.0.0.1", 200), ("10.0.0.2", 403)) * 2:
            with Client(port) as connection:
                connection.send(f"GET /a HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: {client}\r\n\r\n")
                self.assertEqual(status, connection.read_response().status)


    def test_what_comes_after_a_reload_is_not_kept_by_the_rule_of_before(self):
        cases = ({"ignore": ["private"]}, {"ignore": ["vary"]}, {"ignore": ["authorization"]},
                 {"ignore": ["set-cookie"]}, {"request_set": ["X-Who: staff"]})
        for rule in cases:
            for stays in (False, True):
                with self.subTest(rule=rule, stays=stays):
                    self.reload_during_a_response(rule, stays)

    def reload_during_a_response(self, rule, stays):
        go = threading.Event()
        self.addCleanup(go.set)
        said = {"private": {"Cache_Control": "private, max-age=60"}, "vary": {"Vary": "X-Who"},
                "set-cookie": {"Set_Cookie": "a=1"}}
        further = said.get(rule.get("ignore", [""])[0], {})

        def page(exchange):
            exchange.wait(go)
            who = dict(exchange.request.fields).get("x-who", "nobody")
            return response(who.encode(), **{"Cache_Control": "max-age=60", **further})
        origin = Origin(self, default=page)
        encore = self.encore(rule=[rule], admission={"policy": "always"}, workers={"count": 1})
        member = [("X-Who", "member")]
        if "authorization" in rule.get("ignore", []):
            member.append(("Authorization", "Bearer m"))
        first = []
        thread = threading.Thread(target=lambda: first.append(
            get(encore.port, origin.url("/a"), fields=member)))
        thread.start()
        eventually(lambda: origin.count() == 1, "the origin is asked")
        encore.sections["rule"] = [rule] if stays else []
        encore.sections["cache"] = {"keep_stale": "1h"}
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: "reloaded" in encore.output(), "the config is reloaded")
        go.set()
        thread.join()
        own = b"staff" if "request_set" in rule else b"member"
        self.assertEqual(own, first[0].body)
        other = get(encore.port, origin.url("/a"), fields=[("X-Who", "other")])
        self.assertEqual(own if stays else b"other", other.body)

    def test_a_permission_by_one_rule_is_none_by_another(self):
        def members(exchange):
            fields = dict(exchange.request.fields)
            if "staff" == fields.get("x-group") or "Bearer m" == fields.get("authorization"):
                return fresh(b"secret")
            return response(b"no", "403 Forbidden", Cache_Control="no-store")
        origin = Origin(self, default=members)
        encore = self.encore(workers={"count": 1}, admission={"policy": "always"},
                             rule=[{"clients": self.INSIDE, "authorization": "recheck",
                                    "request_set": ["X-Group: staff"]},
                                   {"authorization": "recheck"}])
        url = origin.url("/a")
        self.assertEqual(200, self.ask(encore, url, self.OUTSIDE,
                                       fields=[("Authorization", "Bearer m")]).status)
        for source, status in ((self.OUTSIDE, 403), (self.INSIDE, 200), (self.INSIDE, 200),
                               (self.OUTSIDE, 403)):
            self.assertEqual(status, self.ask(encore, url, source).status)


FOLLOW = {"follow_redirects": True, "follow_hosts": "127.0.0.3"}


class Followed(Case):
    """follow_redirects, where what it leads to is not for everybody."""

    def site(self, where="/hidden/x"):
        return Origin(self, {"/go": response(b"", "302 Found", Location=where,
                                             Cache_Control="max-age=60"),
                             "/hidden/x": fresh(b"hidden")})

    def test_what_a_rule_refuses_or_answers_on_the_same_origin_is_not_followed_to(self):
        for rule in ({"deny": 403}, {"static_status": 404, "static_body": "none"}):
            with self.subTest(rule):
                origin = self.site()
                encore = self.encore(rule=[{"path": "/hidden/*", **rule},
                                           {"follow_redirects": True}])
                self.assertEqual(302, get(encore.port, origin.url("/go")).status)
                self.assertEqual(0, origin.count("/hidden/x"))

    def test_what_the_listener_refuses_is_not_followed_to(self):
        hidden = Origin(self, default=fresh(b"hidden"))
        elsewhere = f"http://localhost:{hidden.port}/x"
        for refused, where in (({"deny_paths": ["/hidden/*"]}, "/hidden/x"),
                               ({"deny_hosts": ["localhost"]}, elsewhere),
                               ({"allow_hosts": ["127.0.0.*"]}, elsewhere),
                               ({"allow_paths": ["/go"]}, "/hidden/x")):
            with self.subTest(refused):
                origin = self.site(where)
                encore = self.encore(
                    listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "forward", **refused}],
                    rule=[{"follow_redirects": True, "follow_hosts": "*"}])
                self.assertEqual(403, get(encore.port, origin.url(where) if where[0] == "/"
                                          else where).status)
                self.assertEqual(302, get(encore.port, origin.url("/go")).status)
                self.assertEqual((0, 0), (origin.count("/hidden/x"), hidden.count()))

    def test_what_a_rule_refuses_to_somebody_is_not_followed_to(self):
        """For what it leads to would be there for all who may ask for the redirection."""
        origin = self.site()
        ports = free_port(), free_port()
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{port}", "mode": "forward"} for port in ports],
            rule=[{"path": "/hidden/*", "listener": f"127.0.0.1:{ports[1]}", "fresh": "1m"},
                  {"path": "/hidden/*", "deny": 403}, {"follow_redirects": True}])
        self.assertTrue(encore.port)
        for port, status in zip(ports, (403, 200)):
            self.assertEqual(status, get(port, origin.url("/hidden/x")).status)
            self.assertEqual(302, get(port, origin.url("/go")).status)

    def test_what_is_overtaken_by_a_purge_or_a_write_is_not_fresh(self):
        for forget in ("purge", "POST"):
            with self.subTest(forget):
                go = threading.Event()

                def latest(exchange, go=go):
                    if exchange.request.method == "POST":
                        return response(b"done")
                    number = sum(one.method == "GET" and one.target == "/latest"
                                 for one in exchange.origin.requests)
                    if number == 1:
                        exchange.wait(go)
                    return response(b"", "302 Found", Location=f"/v{number}",
                                    Cache_Control="max-age=60")
                origin = Origin(self, {"/latest": latest},
                                default=lambda exchange: fresh(exchange.request.target.encode()))
                encore = self.encore(rule=[{"follow_redirects": True}],
                                     admission={"policy": "always"}, timeouts={"collapse": "1h"})
                url = origin.url("/latest")
                first = threading.Thread(target=get, args=(encore.port, url))
                first.start()
                eventually(lambda: origin.count("/latest") == 1, "the first has asked")
                if forget == "purge":
                    encore.admin("/purge?url=" + url, "POST")
                else:
                    get(encore.port, url, method="POST", body=b"x")
                go.set()
                first.join()
                self.assertEqual(b"/v2", get(encore.port, url).body)

    def test_nothing_that_a_rule_takes_from_the_client_goes_elsewhere(self):
        other = Origin(self, default=fresh(b"elsewhere"), host="127.0.0.3")
        origin = self.site(other.url("/x"))
        encore = self.encore(rule=[{**FOLLOW, "request_remove": ["X-Api-Key"],
                                    "request_set": ["X-User: proxy"]}],
                             admission={"policy": "always"})
        answer = get(encore.port, origin.url("/go"),
                     fields=[("X-Api-Key", "secret"), ("X-User", "ann"), ("X-Other", "kept")])
        self.assertEqual(b"elsewhere", answer.body)
        told = dict(other.last().fields)
        self.assertNotIn("x-api-key", told)
        self.assertNotIn("x-user", told)
        self.assertEqual("kept", told["x-other"])

    def test_what_was_asked_for_by_tls_is_not_fetched_in_the_clear(self):
        authority = CertificateAuthority(self)
        clear = Origin(self, default=fresh(b"in the clear"), host="127.0.0.3")
        origin = Origin(self, {"/go": response(b"", "302 Found", Location=clear.url("/x"),
                                               Cache_Control="max-age=60")},
                        tls=authority.server_context("127.0.0.1"))
        encore = self.encore(rule=[FOLLOW],
                             upstream={"tls_ca_file": str(authority.certificate)})
        self.assertEqual(302, get(encore.port, f"https://127.0.0.1:{origin.port}/go").status)
        self.assertEqual(0, clear.count())

    def test_a_whole_location_of_the_same_site_is_followed_behind_tls(self):
        authority = CertificateAuthority(self)
        certificate, key = authority.issue("localhost")
        port = free_port()
        where = f"https://localhost:{port}/x"
        origin = Origin(self, {"/go": response(b"", "302 Found", Location=where,
                                               Cache_Control="max-age=60"), "/x": fresh(b"there")})
        self.encore(listen=[{"address": f"127.0.0.1:{port}", "mode": "reverse",
                             "tls": [{"certificate": str(certificate), "key": str(key)}]}],
                    origin=[{"servers": [origin.url("")]}], rule=[{"follow_redirects": True}])
        context = ssl.create_default_context(cafile=authority.certificate)
        with Client(port) as client:
            client.sock = context.wrap_socket(client.sock, server_hostname="localhost")
            client.send(f"GET /go HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")
            self.assertEqual(b"there", client.read_response().body)

    def test_what_another_origin_says_of_itself_is_not_said_of_the_first(self):
        other = Origin(self, default=response(
            b"", "302 Found", Location="/login?a=1#top", Set_Cookie="id=1",
            Clear_Site_Data='"*"', Strict_Transport_Security="max-age=9"), host="127.0.0.3")
        origin = self.site(other.url("/x"))
        encore = self.encore(rule=[FOLLOW])
        answer = get(encore.port, origin.url("/go"))
        self.assertEqual((302, other.url("/login?a=1#top")),
                         (answer.status, field(answer, "Location")))
        for name in ("Set-Cookie", "Clear-Site-Data", "Strict-Transport-Security"):
            self.assertIsNone(field(answer, name))

    def test_nor_before_its_answer_or_behind_it(self):
        said = "Strict-Transport-Security: max-age=9\r\n"

        def hinted(exchange):
            exchange.send(f"HTTP/1.1 103 Early Hints\r\nLink: </s>\r\n{said}\r\n".encode())
            return chunked(b"there", trailers=f"{said}X-Sum: 1\r\n")
        other = Origin(self, default=hinted, host="127.0.0.3")
        origin = self.site(other.url("/x"))
        encore = self.encore(rule=[FOLLOW], admission={"policy": "always"})
        for _ in range(2):
            with Client(encore.port) as client:
                answer = client.ask(origin.url("/go"), fields=[("TE", "trailers"),
                                                               ("Connection", "TE")])
            self.assertEqual((b"there", [], [("x-sum", "1")]),
                             (answer.body, answer.interim, answer.trailers))

    def test_an_upgrade_is_followed_nowhere(self):
        other = Origin(self, host="127.0.0.3")
        origin = self.site(other.url("/x"))
        encore = self.encore(rule=[FOLLOW])
        answer = get(encore.port, origin.url("/go"),
                     fields=[("Connection", "upgrade"), ("Upgrade", "websocket")])
        self.assertEqual((302, 0), (answer.status, other.count()))

    def test_a_rule_that_waits_for_a_type_holds_by_what_was_asked_for(self):
        other = Origin(self, default=fresh(b"page", Content_Type="text/html"), host="127.0.0.3")
        origin = self.site(other.url("/x"))
        encore = self.encore(rule=[{"path": "/go", "content_type": "text/html", "cache": False},
                                   FOLLOW], admission={"policy": "always"})
        for _ in range(2):
            answer = get(encore.port, origin.url("/go"))
            self.assertEqual(b"page", answer.body)
            self.assertIn("detail=rule", field(answer, "Cache-Status"))

    def test_the_stored_object_stands_in_where_it_leads_to_a_failure(self):
        """And goes where the new answer may not be kept."""
        broken, forbids = [], []

        def target(exchange):
            if broken:
                exchange.reset()
                return None
            if forbids:
                return response(b"new", Cache_Control="no-store")
            return response(b"old", ETag='"1"', Cache_Control="max-age=60", Age="70")
        origin = Origin(self, {"/go": response(b"", "302 Found", Location="/x",
                                               Cache_Control="max-age=60"), "/x": target})
        encore = self.encore(rule=[{"follow_redirects": True, "stale_if_error": "1h"}],
                             admission={"policy": "always"})
        url = origin.url("/go")
        self.assertEqual(b"old", get(encore.port, url).body)
        broken.append(1)
        answer = get(encore.port, url)
        self.assertEqual((200, b"old"), (answer.status, answer.body))
        broken.clear()
        forbids.append(1)
        self.assertEqual(b"new", get(encore.port, url).body)
        broken.append(1)
        self.assertEqual(502, get(encore.port, url).status)

    def test_to_be_sent_elsewhere_is_no_permission(self):
        def members(exchange):
            if ("authorization", "Bearer a") in exchange.request.fields:
                return fresh(b"secret")
            return response(b"", "302 Found", Location="/login")
        origin = Origin(self, {"/a": members, "/b": members, "/login": fresh(b"login")})
        encore = self.encore(rule=[{"authorization": "recheck", "follow_redirects": True}],
                             admission={"policy": "always"})
        member = {"fields": [("Authorization", "Bearer a")]}
        for _ in range(2):
            self.assertEqual(b"secret", get(encore.port, origin.url("/a"), **member).body)
        for _ in range(2):
            self.assertEqual(b"login", get(encore.port, origin.url("/a")).body)
        self.assertIn("; hit", field(get(encore.port, origin.url("/a"), **member), "Cache-Status"))
        # Nor does who comes first put another page in its place.
        self.assertEqual(b"login", get(encore.port, origin.url("/b")).body)
        self.assertEqual(b"secret", get(encore.port, origin.url("/b"), **member).body)


if __name__ == "__main__":
    unittest.main()
