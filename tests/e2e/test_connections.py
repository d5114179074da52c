"""Connections to origins: whose they are, which are kept, and where requests go when one fails."""

import signal
import socket
import threading
import unittest

from client import Client, field, get
from harness import Case, CertificateAuthority, eventually, free_port
from origin import Origin, chunked, fresh, response

UNSTORED = {"Cache_Control": "no-store"}


def ask(port, path="/", method="GET", fields=(), body=b"", host="site.example"):
    """One request to a reverse listener on a connection of its own."""
    with Client(port) as client:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}",
                 *(f"{name}: {value}" for name, value in fields)]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        client.send("\r\n".join([*lines, "", ""]).encode() + body)
        return client.read_response(method)


class ConnectionCase(Case):
    def reverse(self, servers, **sections):
        """One worker, so that what one connection left behind is there for the next."""
        sections = {"workers": {"count": 1}, **sections}
        return self.encore(listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
                           origin=[{"servers": servers}], **sections)

    def held(self, answer=None):
        """A route that answers when the event is set, and the event."""
        go = threading.Event()

        def route(exchange):
            exchange.wait(go)
            return answer or response(b"held", **UNSTORED)
        return route, go


class Settings(ConnectionCase):
    def reload(self, encore, **sections):
        for name, section in sections.items():
            encore.sections[name] = {**encore.sections[name], **section}
        encore.write_config()
        encore.signal(signal.SIGHUP)

    def unverified(self, answer=None):
        """A TLS origin that nobody has a reason to trust, and its held request."""
        authority = CertificateAuthority(self)
        route, go = self.held(answer)
        origin = Origin(self, {"/held": route}, default=response(b"unverified", **UNSTORED),
                        tls=authority.server_context("127.0.0.1"))
        return origin, go

    def test_a_fetch_from_before_a_reload_leaves_no_connection_to_requests_after_it(self):
        for forward in (False, True):
            origin, go = self.unverified()
            lax = {"upstream": {"tls_verify": False}}
            encore = (self.encore(workers={"count": 1}, **lax) if forward
                      else self.reverse([origin.url("")], **lax))

            def once(path, encore=encore, origin=origin, forward=forward):
                return get(encore.port, origin.url(path)) if forward else ask(encore.port, path)
            self.assertEqual(b"unverified", once("/before").body)
            with Client(encore.port) as client:
                client.request(origin.url("/held"))
                eventually(lambda origin=origin: origin.count("/held"), "it is under way")
                self.reload(encore, upstream={"tls_verify": True})
                eventually(lambda: once("/refused").status == 502, "the new settings are in force")
                go.set()
                self.assertEqual(b"held", client.read_response().body)
            self.assertEqual(502, once("/after").status)

    def test_nobody_is_given_what_was_asked_for_under_settings_of_before(self):
        origin, go = self.unverified(fresh(b"held"))
        encore = self.encore(upstream={"tls_verify": False}, timeouts={"collapse": "0s"})
        with Client(encore.port) as first, Client(encore.port) as second:
            first.request(origin.url("/held"))
            eventually(lambda: origin.count("/held"), "it is under way")
            self.reload(encore, upstream={"tls_verify": True})
            eventually(lambda: get(encore.port, origin.url("/refused")).status == 502,
                       "the new settings are in force")
            self.assertEqual(502, second.ask(origin.url("/held")).status)
            go.set()
            self.assertEqual(b"held", first.read_response().body)

    def test_an_idle_connection_from_before_a_reload_is_not_used_after_it(self):
        origin = Origin(self, default=response(b"page", **UNSTORED))
        encore = self.reverse([origin.url("")])
        for _ in range(2):
            self.assertEqual(b"page", ask(encore.port).body)
        self.assertEqual(1, origin.connections)
        self.reload(encore, upstream={"tls_verify": False})
        eventually(lambda: encore.metrics()["encore_origin_connections"] == 0, "it is closed")
        self.assertEqual(b"page", ask(encore.port).body)
        self.assertEqual(2, origin.connections)


class InStep(ConnectionCase):
    def test_a_connection_whose_request_was_not_wholly_sent_is_not_used_again(self):
        # The origin answers after the first line, and the head is larger than what the kernel
        # takes of it: what is left would be read as the beginning of the next request.
        padding = [(f"X-Padding-{n}", "x" * 60_000) for n in range(200)]
        limits = {"limits": {"head": "16MiB"}}
        for status in (200, 304):
            origin = HastyOrigin(self, status)
            encore = self.reverse([origin.url], admission={"policy": "always"}, **limits)
            self.assertEqual(b"page", ask(encore.port, "/page").body)
            answer = ask(encore.port, "/page", fields=padding)
            self.assertEqual((200, b"page"), (answer.status, answer.body))
            origin.read_on.set()
            answer = ask(encore.port, "/next")
            self.assertEqual((200, b"page"), (answer.status, answer.body))
            self.assertEqual(["GET /page HTTP/1.1", "GET /page HTTP/1.1", "GET /next HTTP/1.1"],
                             origin.lines)


    def check_304(self, client, request, told=None):
        """A 304 without a body, or what would be taken for one, that leaves its connection in
        step. `told`: the length that it may name, which is a 200's."""
        client.send(request)
        answer = client.read_response()
        self.assertEqual(304, answer.status)
        self.assertIsNone(field(answer, "Transfer-Encoding"))
        self.assertIn(field(answer, "Content-Length"), (None, told))
        self.assertNotIn("close", field(answer, "Connection") or "")
        client.send("GET /next HTTP/1.1\r\nHost: site.example\r\n\r\n")
        answer = client.read_response()
        self.assertEqual((200, b"next"), (answer.status, answer.body))

    CONDITIONAL = 'GET /page HTTP/1.1\r\nHost: site.example\r\nIf-None-Match: "a"\r\n\r\n'

    def test_a_304_from_the_store_leaves_its_connection_in_step(self):
        def validated(exchange):
            if "if-none-match" in dict(exchange.request.fields):
                return b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n'
            return response(b"page", ETag='"a"', Cache_Control="max-age=60", Age="70")
        for page in (fresh(b"page", ETag='"a"'), chunked(b"page", ETag='"a"'), validated,
                     fresh(b"page" * 10_000, ETag='"a"')):
            origin = Origin(self, {"/page": page, "/next": fresh(b"next")})
            encore = self.reverse([origin.url("")], admission={"policy": "always"})
            with Client(encore.port) as client:
                for _ in range(3):  # fetched whole for it, then stored
                    self.check_304(client, self.CONDITIONAL)

    def test_a_304_of_the_origin_leaves_both_its_connections_in_step(self):
        def said(line):
            return b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n%s\r\n' % line
        for line, told in ((b"", None), (b"Content-Length: 4\r\n", "4"),
                           (b"Transfer-Encoding: chunked\r\n", None)):
            with self.subTest(line):
                origin = Origin(self, {"/page": said(line), "/next": response(b"next", **UNSTORED)})
                encore = self.reverse([origin.url("")], admission={"policy": "never"})
                with Client(encore.port) as client:
                    for _ in range(3):
                        self.check_304(client, self.CONDITIONAL, told)
                self.assertEqual(1, origin.connections)


class Unrepeatable(ConnectionCase):
    """Requests that may have had an effect (RFC 9110 9.2.2), those without a body among them."""

    EMPTY_POSTS = ("POST /write HTTP/1.1\r\nHost: site.example\r\nContent-Length: 0\r\n\r\n",
                   "POST /write HTTP/1.1\r\nHost: site.example\r\n\r\n")

    def send(self, encore, request):
        with Client(encore.port) as client:
            client.send(request)
            return client.read_response()

    def test_an_empty_post_goes_on_a_connection_of_its_own(self):
        # The kept connection ends when it is used again, as an origin's does that was about to
        # close it: a post that was sent there could not be sent again.
        def once(exchange):
            exchange.send(response(b"ok", **UNSTORED))
            exchange.origin.used.append(exchange.sock)
            return None

        def write(exchange):
            if exchange.sock in exchange.origin.used:
                return exchange.close()
            return response(b"written")
        for request in self.EMPTY_POSTS:
            origin = Origin(self, {"/write": write}, default=once)
            origin.used = []
            encore = self.reverse([origin.url("")])
            self.assertEqual(b"ok", ask(encore.port).body)
            answer = self.send(encore, request)
            self.assertEqual((200, b"written"), (answer.status, answer.body))
            self.assertEqual((1, 2), (origin.count("/write"), origin.connections))

    def test_an_empty_post_is_never_sent_twice(self):
        for request in self.EMPTY_POSTS:
            for how in (lambda x: x.reset(), lambda x: x.close()):
                servers = [Origin(self, default=how) for _ in range(2)]
                encore = self.reverse([origin.url("") for origin in servers],
                                      upstream={"retries": 3})
                self.assertEqual(502, self.send(encore, request).status)
                self.assertEqual(1, sum(origin.count() for origin in servers))


class Failover(ConnectionCase):
    """Servers of one origin that do not answer, and where their requests go."""

    def good(self, **options):
        return Origin(self, default=response(b"good", **UNSTORED), **options)

    def bad(self, how, **options):
        return Origin(self, default=how, **options)

    def closed_port(self):
        return f"http://127.0.0.1:{free_port()}"

    def assert_all_good(self, encore, count=20, **options):
        for _ in range(count):
            answer = ask(encore.port, **options)
            self.assertEqual((200, b"good"), (answer.status, answer.body))

    def test_a_dead_server_costs_no_error_and_is_set_aside(self):
        for retries in (0, 1):
            for method, body in (("GET", b""), ("POST", b"something")):
                good = self.good()
                encore = self.reverse([self.closed_port(), good.url(""), self.closed_port()],
                                      upstream={"retries": retries})
                self.assert_all_good(encore, method=method, body=body)
                metrics = encore.metrics()
                self.assertEqual(2, metrics["encore_origins_set_aside_total"])
                self.assertLessEqual(metrics["encore_origin_failovers_total"], 2)
                self.assertEqual(0, metrics["encore_origin_retries_total"])

    def test_a_server_whose_name_is_not_known_is_passed_over(self):
        good = self.good()
        encore = self.reverse(["http://no.such..name", good.url("")])
        self.assert_all_good(encore)

    def test_a_reset_before_an_answer_goes_to_the_next_server_where_that_is_safe(self):
        for how in (lambda x: x.reset(), lambda x: x.close()):
            good, bad = self.good(), self.bad(how)
            encore = self.reverse([bad.url(""), good.url("")], upstream={"set_aside": "0s"})
            self.assert_all_good(encore)
            self.assertEqual(10, bad.count())
            self.assertEqual(10, encore.metrics()["encore_origin_retries_total"])
            statuses = [ask(encore.port, method="POST", body=b"once").status for _ in range(10)]
            self.assertEqual([200] * 5 + [502] * 5, sorted(statuses))
            self.assertEqual(10 + 5, bad.count())

    def test_what_began_to_answer_is_not_asked_again(self):
        good = self.good()

        def half(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-")
            exchange.close()
        encore = self.reverse([self.bad(half).url(""), good.url("")])
        self.assertEqual([200, 502], sorted(ask(encore.port).status for _ in range(2)))
        self.assertEqual(1, good.count())

    def test_a_hung_server_costs_one_attempt(self):
        hung, good = self.bad(lambda x: x.wait_until_closed()), self.good()
        encore = self.reverse([hung.url(""), good.url("")],
                              timeouts={"origin_response": "300ms"})
        self.assert_all_good(encore)
        self.assertEqual(1, hung.count())
        self.assertEqual(1, encore.metrics()["encore_origin_retries_total"])

    def test_a_request_is_sent_no_more_often_than_retries_say(self):
        for retries in (0, 1, 3):
            for servers in (1, 2, 3):
                bad = [self.bad(lambda x: x.reset()) for _ in range(servers)]
                encore = self.reverse([origin.url("") for origin in bad],
                                      upstream={"retries": retries})
                self.assertEqual(502, ask(encore.port).status)
                self.assertEqual(retries + 1, sum(origin.count() for origin in bad))

    def test_a_server_that_hangs_is_not_asked_twice_by_one_request(self):
        hung = self.bad(lambda x: x.wait_until_closed())
        encore = self.reverse([hung.url("")], timeouts={"origin_response": "100ms"},
                              upstream={"retries": 3})
        self.assertEqual(504, ask(encore.port).status)
        self.assertEqual(1, hung.count())

    def test_the_last_server_is_never_set_aside(self):
        moody = {"reset": True}

        def answer(exchange):
            if moody["reset"]:
                return exchange.reset()
            return response(b"good", **UNSTORED)
        encore = self.reverse([self.closed_port(), self.bad(answer).url("")],
                              upstream={"retries": 0})
        for _ in range(5):
            self.assertEqual(502, ask(encore.port).status)
        self.assertEqual(1, encore.metrics()["encore_origins_set_aside_total"])
        moody["reset"] = False
        failovers = encore.metrics()["encore_origin_failovers_total"]
        self.assert_all_good(encore)
        self.assertEqual(failovers, encore.metrics()["encore_origin_failovers_total"])

    def test_a_server_that_was_set_aside_gets_its_turn_again(self):
        port = free_port()
        good = self.good()
        encore = self.reverse([f"http://127.0.0.1:{port}", good.url("")],
                              upstream={"set_aside": "100ms"})
        self.assert_all_good(encore)
        back = self.good(port=port)

        def asked():
            self.assert_all_good(encore, 2)
            return back.count()
        eventually(asked, "the server that is back is asked")
        before = back.count()
        self.assert_all_good(encore, 20)
        self.assertGreaterEqual(back.count(), before + 9)

    def test_another_address_of_the_same_server_is_asked(self):
        # localhost is 127.0.0.1 first, then ::1.
        for how in (lambda x: x.reset(), lambda x: x.wait_until_closed()):
            bad = self.bad(how)
            good = self.good(host="::1", port=bad.port)
            encore = self.reverse([f"http://localhost:{bad.port}"],
                                  timeouts={"origin_response": "300ms"})
            self.assert_all_good(encore, 2)
            self.assertEqual((1, 2), (bad.count(), good.count()))


class GoneClients(ConnectionCase):
    """Clients that have closed while they waited, and such as only say that they are done."""

    def silent(self):
        return Origin(self, default=lambda x: x.wait_until_closed())

    def test_clients_that_have_gone_hold_nothing_while_an_origin_is_silent(self):
        origin, other = self.silent(), self.silent()
        encore = self.encore()
        clients = []
        for n in range(60):
            client = Client(encore.port)
            # Requests of every kind, one for each client or one for all, some with others behind.
            path = ("/joined", f"/own/{n}", f"/behind/{n}")[n % 3]
            client.request(origin.url(path), version="HTTP/1.0" if n % 2 else "HTTP/1.1")
            if n % 3 == 2:
                client.request(other.url(f"/{n}"))
            clients.append(client)
        eventually(lambda: origin.count() == 41, "all are under way")
        for client in clients:
            client.close()

        def let_go():
            metrics = encore.metrics()
            return (metrics["encore_client_connections"], metrics["encore_origin_connections"],
                    metrics["encore_transfers"]) == (0, 0, 0)
        # The origin would be waited for for a minute.
        eventually(let_go, "nothing is held for them", deadline=30)
        self.assertEqual(60, encore.outcomes()["client-aborted"])

    def ended(self, encore, url, version):
        """A client that has ended its side, when the proxy has looked whether it is still there."""
        client = Client(encore.port)
        self.addCleanup(client.close)
        client.request(url, version=version)
        client.shutdown()
        seen = client.sock.recv(9, socket.MSG_PEEK | socket.MSG_WAITALL)
        self.assertEqual(b"HTTP/1.1 ", seen)
        return client

    def test_a_client_that_only_ended_its_side_gets_its_response(self):
        for version in ("HTTP/1.1", "HTTP/1.0"):
            route, go = self.held(response(b"held" * 1000, **UNSTORED))
            origin = Origin(self, default=route)
            encore = self.encore()
            clients = [self.ended(encore, origin.url(f"/{n}"), version) for n in range(3)]
            go.set()
            for client in clients:
                answer = client.read_response()
                self.assertEqual((200, b"held" * 1000), (answer.status, answer.body))
                self.assertTrue(client.at_end())

    def test_it_also_gets_interim_responses_and_errors_whole(self):
        go = threading.Event()

        def hints(exchange):
            exchange.wait(go)
            exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")
            return response(b"page", **UNSTORED)

        def none(exchange):
            exchange.wait(go)
            exchange.close()
        origin = Origin(self, {"/hints": hints, "/none": none})
        encore = self.encore()
        clients = [self.ended(encore, origin.url(path), "HTTP/1.1") for path in ("/hints", "/none")]
        go.set()
        answer = clients[0].read_response()
        self.assertEqual(([103], b"page"), ([i.status for i in answer.interim], answer.body))
        self.assertEqual(502, clients[1].read_response().status)


class HastyOrigin:
    """Answers as soon as it has read the first line. The rest of a large head it reads when the
    test sets `read_on`, and notes what came in place of that."""

    def __init__(self, case, to_large):
        self.to_large = to_large
        self.lines = []
        self.read_on = threading.Event()
        case.addCleanup(self.read_on.set)
        self.listener = socket.create_server(("127.0.0.1", 0))
        # Some kernels would take all of the large head.
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        case.addCleanup(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        page = response(b"page", ETag='"a"', Cache_Control="max-age=0")
        not_modified = b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n'
        with sock:
            try:
                while data := sock.recv(4096):
                    self.lines.append(data.partition(b"\r\n")[0].decode("latin-1"))
                    large = not data.endswith(b"\r\n\r\n")
                    sock.sendall(not_modified if large and self.to_large == 304 else page)
                    if large:
                        self.read_on.wait()
                    while large and not data.endswith(b"\r\n\r\n"):
                        more = sock.recv(1 << 20)
                        if not more:
                            return
                        data = data[-4:] + more
                    if large and b"GET /next" in data:
                        # Behind the end of the large head it is a request like others.
                        is_apart = b"\r\n\r\nGET /next" in data
                        self.lines.append("GET /next HTTP/1.1" if is_apart
                                          else "a request within another")
                        sock.sendall(page)
            except OSError:
                return


if __name__ == "__main__":
    unittest.main()
