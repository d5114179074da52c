"""The hosts to which redirections of origins are followed, and others: the hosts that a rule names,
our own listeners, and hosts that [forward] denies, in each mode and at each step."""

import itertools
import threading
import unittest

from client import Client, field, get
from harness import Case, CertificateAuthority, free_port
from name_server import NameServer
from origin import Origin, fresh, response


def redirect(where, **fields):
    return response(b"moved", "302 Found", Location=where, **fields)


def detail(answer):
    said = field(answer, "Cache-Status") or ""
    return next((part.strip()[7:] for part in said.split(";")
                 if part.strip().startswith("detail=")), "")


class Redirects(Case):
    """A site, at 127.0.0.1, that leads to wherever a test says."""

    def setUp(self):
        super().setUp()
        self.where, self.number = "", itertools.count()
        self.site = Origin(self, {"/go": lambda exchange: redirect(self.where)},
                           default=fresh(b"site"))
        self.stranger = Origin(self, default=fresh(b"stranger"), host="127.0.0.3")
        self.names = NameServer(self)

    def proxy(self, mode="forward", rule=(), forward=None, **sections):
        self.rule = {"follow_redirects": True, **dict(rule)}
        self.mode = mode
        sections.setdefault("listen", [{"address": f"127.0.0.1:{free_port()}", "mode": mode}])
        if mode == "reverse":
            sections["origin"] = [{"servers": [self.site.url("")]}]
        return self.encore(rule=[self.rule], admission={"policy": "always"},
                           upstream={"nameservers": [self.names.address]},
                           timeouts={"origin_connect": "1s"},
                           forward={"safe_ports": ["1-65535"], **(forward or {})}, **sections)

    def ask(self, encore, where, path="/go", host=None):
        self.where = where
        path += f"?{next(self.number)}"  # nothing of what was asked for before
        if self.mode == "forward":
            return get(encore.port, self.site.url(path))
        with Client(encore.port) as client:
            client.send(f"GET {path} HTTP/1.1\r\nHost: {host or self.site.authority}\r\n\r\n")
            return client.read_response()

    def check_passed_on(self, answer, where, why):
        self.assertEqual((302, where, b"moved", why),
                         (answer.status, field(answer, "Location"), answer.body, detail(answer)))


class Hosts(Redirects):
    def test_another_host_is_followed_only_where_the_rule_names_it(self):
        self.names.answers["cdn.example"] = [["127.0.0.3"]]
        port = self.stranger.port
        for mode in ("forward", "reverse"):
            for named, host, is_followed in (
                    ([], "127.0.0.3", False), ([], "cdn.example", False),
                    (["127.0.0.4"], "127.0.0.3", False), (["*.cdn.example"], "cdn.example", False),
                    (["127.0.0.3"], "127.0.0.3", True), ("127.0.0.*", "127.0.0.3", True),
                    (["other", "*.example"], "CDN.example", True), (["*"], "cdn.example.", True)):
                with self.subTest(mode=mode, named=named, host=host):
                    encore = self.proxy(mode, {"follow_hosts": named})
                    before = self.stranger.count()
                    where = f"http://{host}:{port}/x"
                    answer = self.ask(encore, where)
                    if is_followed:
                        self.assertEqual((200, b"stranger"), (answer.status, answer.body))
                    else:
                        self.check_passed_on(answer, where, "redirect-host")
                        self.assertEqual(before, self.stranger.count())
                    encore.stop()

    def test_the_same_host_is_followed_whatever_its_port_and_case(self):
        other = Origin(self, default=fresh(b"other port"))
        for mode in ("forward", "reverse"):
            encore = self.proxy(mode)
            self.assertEqual(b"site", self.ask(encore, "/x").body)
            self.assertEqual(b"other port", self.ask(encore, other.url("/x")).body)
            encore.stop()

    def test_each_step_is_looked_at(self):
        middle = Origin(self, {"/m": redirect(self.stranger.url("/x"))}, host="127.0.0.4")
        for mode in ("forward", "reverse"):
            encore = self.proxy(mode, {"follow_hosts": "127.0.0.4"})
            self.check_passed_on(self.ask(encore, middle.url("/m")), self.stranger.url("/x"),
                                 "redirect-host")
            self.assertEqual(0, self.stranger.count())
            encore.stop()
        # Back to where it began is the same host still.
        back = Origin(self, {"/m": redirect(self.site.url("/x"))}, host="127.0.0.4")
        encore = self.proxy(rule={"follow_hosts": "127.0.0.4"})
        self.assertEqual(b"site", self.ask(encore, back.url("/m")).body)

    def test_the_log_and_explanations_say_why(self):
        encore = self.proxy()
        self.ask(encore, self.stranger.url("/x"))
        self.assertEqual("redirect-host", encore.access_records(1)[0]["detail"])
        status, text = encore.admin(f"/api/explain?url={self.site.url('/go?0')}&format=text")
        self.assertEqual(200, status)
        self.assertIn("redirect-host", text)
        self.assertIn("followed to the same host", text)

    def test_what_is_for_one_or_leads_in_circles_says_so(self):
        encore = self.proxy()
        self.check_passed_on(self.ask(encore, "/go"), "/go", "redirect-too-many")
        self.site.routes["/one"] = response(b"moved", "302 Found", Location="/x",
                                            Cache_Control="private")
        self.check_passed_on(self.ask(encore, "", "/one"), "/x", "redirect-for-one")

    def test_what_a_cookie_may_have_chosen_is_for_one(self):
        said = {}

        def me(exchange):
            return response(b"moved", self.status, **said,
                            Location="/u/" + dict(exchange.request.fields).get("cookie", "none"))
        self.site.routes["/me"] = me
        self.site.default = lambda exchange: fresh(exchange.request.target.encode())

        def ask(encore, cookie):
            fields = [("Cookie", cookie)] if cookie else []
            target = "/me" if self.mode == "reverse" else self.site.url("/me")
            with Client(encore.port) as client:
                lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
                client.send(f"GET {target} HTTP/1.1\r\nHost: {self.site.authority}\r\n"
                            f"{lines}\r\n")
                return client.read_response()
        for mode in ("forward", "reverse"):
            for self.status in ("301 Moved", "302 Found", "303 See Other", "307 Temporary"):
                for fields in ({}, {"Cache_Control": "max-age=0"}):
                    with self.subTest(mode=mode, status=self.status, fields=fields):
                        said = fields
                        encore = self.proxy(mode)
                        for cookie in ("a=1", "a=2"):
                            answer = ask(encore, cookie)
                            self.assertEqual(("/u/" + cookie, "redirect-for-one"),
                                             (field(answer, "Location"), detail(answer)))
                        # Without one it is for all, and with one that is not sent.
                        self.assertEqual(b"/u/none", ask(encore, "").body)
                        encore.stop()
            self.status, said = "302 Found", {}
            for rule in ({"cookies": "ignore"}, {"request_remove": ["Cookie"]}):
                encore = self.proxy(mode, rule)
                self.assertEqual(b"/u/none", ask(encore, "a=1").body, rule)
                encore.stop()
            # Objects of their own are no one else's.
            encore = self.proxy(mode, {"cookies": "key:a"})
            for cookie in ("a=1", "a=2", "a=1"):
                self.assertEqual(f"/u/{cookie}".encode(), ask(encore, cookie).body)
            encore.stop()
            # The origin, or the operator, states a lifetime: it is for all.
            for said, rule in (({"Cache_Control": "max-age=60"}, {}), ({}, {"fresh": "1m"})):
                encore = self.proxy(mode, rule)
                for cookie in ("a=1", "a=2"):
                    self.assertEqual(b"/u/a=1", ask(encore, cookie).body, (said, rule))
                encore.stop()

    def test_a_wrong_follow_hosts_is_refused(self):
        encore = self.encore(start=False, rule=[{"follow_hosts": "cdn.example"}])
        encore.write_config()
        ended = self.run_client([encore.program, "--config", encore.config_path, "--check-config"],
                                check=False)
        self.assertNotEqual(0, ended.returncode)
        self.assertIn(b"rule.0.follow_hosts", ended.stdout)


class Destinations(Redirects):
    ANY = {"follow_hosts": "*"}

    def test_a_listener_of_our_own_is_never_followed_to(self):
        for mode in ("forward", "reverse"):
            encore = self.proxy(mode, self.ANY)
            self.names.answers["us.example"] = [["127.0.0.1"]]
            self.names.answers["both.example"] = [["127.0.0.3", "127.0.0.1"]]
            for port in (encore.port, encore.admin_port):
                for host in ("127.0.0.1", "localhost", "127.0.0.77", "us.example", "both.example",
                             "[::ffff:127.0.0.1]", "[::1]", "sub.localhost"):
                    with self.subTest(mode=mode, host=host):
                        where = f"http://{host}:{port}/metrics"
                        answer = self.ask(encore, where)
                        if mode == "reverse" and host == "127.0.0.1" and port == encore.port:
                            continue
                        self.check_passed_on(answer, where, "redirect-own-listener")
            encore.stop()

    def test_what_forward_denies_is_not_followed_to(self):
        self.names.answers["inside.example"] = [["127.0.0.3"]]
        self.names.answers["metadata.example"] = [["169.254.169.254"]]
        self.names.answers["nobody.example"] = [["0.0.0.0"]]
        port = self.stranger.port
        encore = self.proxy("reverse", self.ANY, {"private_destinations": "never"})
        for host, why in (("127.0.0.3", "private-destination"),
                          ("inside.example", "private-destination"),
                          ("metadata.example", "private-destination"),
                          ("[::ffff:127.0.0.3]", "private-destination"),
                          ("10.0.0.1", "private-destination"),
                          ("nobody.example", "not-a-destination"),
                          ("224.0.0.1", "not-a-destination")):
            with self.subTest(host):
                where = f"http://{host}:{port}/x"
                self.check_passed_on(self.ask(encore, where), where, "redirect-" + why)
        self.assertEqual(0, self.stranger.connections)

    def test_a_port_that_forward_denies_is_not_followed_to(self):
        for mode in ("forward", "reverse"):
            encore = self.proxy(mode, self.ANY,
                                {"safe_ports": [str(self.site.port), str(self.stranger.port)]})
            self.check_passed_on(self.ask(encore, "http://127.0.0.3:25/x"),
                                 "http://127.0.0.3:25/x", "redirect-port")
            self.assertEqual(b"stranger", self.ask(encore, self.stranger.url("/x")).body)
            encore.stop()

    def test_a_step_to_what_is_denied_is_not_taken_either(self):
        inside = Origin(self, default=fresh(b"inside"))
        encore = self.proxy("forward", self.ANY)
        middle = Origin(self, {"/m": redirect(f"http://127.0.0.77:{encore.port}/")},
                        host="127.0.0.3")
        self.check_passed_on(self.ask(encore, middle.url("/m")),
                             f"http://127.0.0.77:{encore.port}/", "redirect-own-listener")
        self.assertEqual(0, inside.count())

    def test_the_whole_response_is_passed_on_though_its_name_had_to_be_looked_up(self):
        """With a body that comes behind, and readers who wait for it."""
        go = threading.Event()
        body = bytes(range(256)) * 2000
        self.names.answers["inside.example"] = [["127.0.0.3"]]
        where = f"http://inside.example:{self.stranger.port}/x"

        def slow(exchange):
            exchange.send(f"HTTP/1.1 302 Found\r\nLocation: {where}\r\nX-Kept: yes\r\n"
                          f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
            exchange.wait(go)
            exchange.send(body[10:])
        self.site.routes["/slow"] = slow
        encore = self.proxy("reverse", self.ANY, {"private_destinations": "never"})
        with Client(encore.port) as client:
            client.send("GET /slow HTTP/1.1\r\nHost: site.example\r\n\r\n")
            go.set()
            answer = client.read_response()
        self.assertEqual((302, "yes", where, len(body)),
                         (answer.status, field(answer, "X-Kept"), field(answer, "Location"),
                          len(answer.body)))
        self.assertEqual(body, answer.body)
        self.assertEqual("redirect-private-destination", detail(answer))

    def test_a_name_that_moves_between_check_and_use_reaches_nobody(self):
        encore = self.proxy("reverse", self.ANY)
        self.names.answers["turn.example"] = [["127.0.0.3"], ["127.0.0.1"]]
        answer = self.ask(encore, f"http://turn.example:{encore.admin_port}/metrics")
        self.assertNotEqual(200, answer.status)

    def test_inside_tls_too(self):
        authority = CertificateAuthority(self)
        self.site = Origin(self, {"/go": lambda exchange: redirect(self.where)},
                           tls=authority.server_context("127.0.0.1"))
        encore = self.encore(rule=[{"follow_redirects": True, "follow_hosts": "127.0.0.*"}],
                             upstream={"tls_ca_file": str(authority.certificate)},
                             forward={"safe_ports": ["1-65535"]})
        self.where = f"https://127.0.0.9:{encore.port}/"
        answer = get(encore.port, f"https://127.0.0.1:{self.site.port}/go")
        self.check_passed_on(answer, self.where, "redirect-own-listener")


if __name__ == "__main__":
    unittest.main()
