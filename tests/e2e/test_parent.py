"""Forward listeners that ask another proxy, and hosts that are asked by https; the parent is a real
proxy itself."""

import socket
import threading

from client import Client, field, get
from harness import DEADLINE, Case, CertificateAuthority, eventually, free_port
from origin import Origin, fresh, response
from test_connections import ask


class ParentCase(Case):
    def setUp(self):
        super().setUp()
        self.parent = self.encore(forward={"connect_ports": [443]})

    def child(self, **sections):
        sections.setdefault("forward", {})
        sections["forward"] = {"parent": self.parent.url, **sections["forward"]}
        return self.encore(**sections)

    def logged(self, encore):
        return encore.access_path.read_text() if encore.access_path.exists() else ""


class Parent(ParentCase):
    def test_what_is_asked_by_http_goes_to_the_parent_whole(self):
        origin = Origin(self, {"/a": fresh(b"stored", 600)},
                        default=response(b"other", Cache_Control="no-store"))
        child = self.child(admission={"policy": "always"}, workers={"count": 1})
        for _ in range(3):
            self.assertEqual(b"stored", get(child.port, origin.url("/a?b")).body)
        self.assertEqual(1, origin.count())
        request = origin.last()
        self.assertEqual("/a?b", request.target)
        for number in range(5):
            self.assertEqual(b"other", get(child.port, origin.url(f"/{number}")).body)
        with Client(child.port) as client:
            client.request(origin.url("/post"), "POST", body=b"x" * 100000)
            self.assertEqual(b"other", client.read_response("POST").body)
        metrics = child.metrics()
        # One connection serves all destinations, but for what may not be sent twice.
        self.assertEqual(2, metrics["encore_origin_connects_total"])
        eventually(lambda: self.logged(self.parent).count(f"{origin.port}/") >= 7, "the parent saw them")

    def test_a_connect_goes_through_it_and_what_it_refuses_is_refused(self):
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(DEADLINE)
        self.addCleanup(listener.close)
        port = listener.getsockname()[1]

        def serve():
            taken, _ = listener.accept()
            with taken:
                taken.sendall(b"hello first")  # before the client says anything
                taken.sendall(taken.recv(100))
        threading.Thread(target=serve, daemon=True).start()
        child = self.child(forward={"connect_ports": [port, 444]})
        with Client(child.port) as client:
            client.send(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = client.read_response("CONNECT")
            self.assertEqual(502, answer.status, answer)  # the parent allows 443 alone
            self.assertIn("connect-proxy", field(answer, "cache-status"))
        self.parent.stop()
        self.parent = self.encore(forward={"connect_ports": [port]})
        child = self.child(forward={"connect_ports": [port]})
        with Client(child.port) as client:
            client.send(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(200, client.read_response("CONNECT").status)
            self.assertEqual(b"hello first", client.read_exactly(11))
            client.send(b"echo")
            self.assertEqual(b"echo", client.read_exactly(4))

    def test_https_goes_through_a_tunnel_of_the_parent(self):
        authority = CertificateAuthority(self)
        origin = Origin(self, default=fresh(b"secret", 600),
                        tls=authority.server_context("127.0.0.1"))
        self.parent.stop()
        self.parent = self.encore(forward={"connect_ports": [origin.port]})
        child = self.child(admission={"policy": "always"},
                           upstream={"tls_ca_file": str(authority.certificate)})
        for _ in range(2):
            self.assertEqual(b"secret", get(child.port, origin.url("/")).body)
        self.assertEqual(1, origin.count())
        self.assertEqual("/", origin.last().target)
        eventually(lambda: '"CONNECT"' in self.logged(self.parent) or
                   self.parent.metrics()["encore_tunnels_total"] == 1, "a tunnel was opened")
        # Nobody is believed whom we have no reason to trust.
        child = self.child()
        self.assertEqual(502, get(child.port, origin.url("/")).status)

    def test_what_can_be_checked_here_is_and_a_parent_is_not_oneself(self):
        child = self.child(forward={"private_destinations": "never"})
        for host in ("127.0.0.1", "localhost", "10.1.2.3", "[::1]", "a.localhost"):
            self.assertEqual(403, get(child.port, f"http://{host}:8/").status, host)
            with Client(child.port) as client:
                client.send(f"CONNECT {host}:443 HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(403, client.read_response("CONNECT").status, host)
        self.assertEqual(0, self.parent.metrics()["encore_client_received_bytes_total"])
        port = free_port()
        own = self.encore(listen=[{"address": f"127.0.0.1:{port}", "mode": "forward"}],
                          forward={"parent": f"http://127.0.0.1:{port}"})
        self.assertEqual(403, get(own.port, "http://some.example/").status)

    def circle(self, members):
        """This many proxies, each the parent of the one before it, the first of the last."""
        ports = [free_port() for _ in range(members)]
        return [self.encore(listen=[{"address": f"127.0.0.1:{port}", "mode": "forward"}],
                            forward={"parent": f"http://127.0.0.1:{ports[(at + 1) % members]}"},
                            limits={"connections": 60})
                for at, port in enumerate(ports)]

    def test_a_connect_in_a_circle_of_parents_is_refused_after_one_round(self):
        for members in (2, 3):
            circle = self.circle(members)
            with Client(circle[0].port) as client:
                client.send("CONNECT some.example:443 HTTP/1.1\r\nHost: x\r\n"
                            "Via: 1.0 first\r\n\r\n")
                answer = client.read_response("CONNECT")
            self.assertEqual(508, answer.status, answer)
            self.assertIn("loop", field(answer, "cache-status"))
            for encore in circle[1:]:
                eventually(lambda: self.logged(encore).count('"CONNECT"') == 1, "one request came")
            eventually(lambda: self.logged(circle[0]).count('"CONNECT"') == 2, "and it came back")
            for encore in circle:
                encore.stop()

    def test_a_tunnel_for_https_in_a_circle_of_parents_is_refused_after_one_round(self):
        circle = self.circle(2)
        self.assertEqual(502, get(circle[0].port, "https://some.example/").status)
        eventually(lambda: self.logged(circle[0]).count('"CONNECT"') == 1, "it came back")
        eventually(lambda: self.logged(circle[1]).count('"CONNECT"') == 1, "and came once there")

    def test_a_connect_tells_the_parent_by_whom_it_came(self):
        for via, expected in ((True, b"Via: 1.0 a, 1.1 b, 1.1 encore-"), (False, b"Via: 1.0 a")):
            listener = socket.create_server(("127.0.0.1", 0))
            listener.settimeout(DEADLINE)
            self.addCleanup(listener.close)
            child = self.encore(
                listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "forward", "via": via}],
                forward={"parent": f"http://127.0.0.1:{listener.getsockname()[1]}"})
            with Client(child.port) as client:
                client.send("CONNECT some.example:443 HTTP/1.1\r\nHost: x\r\n"
                            "Via: 1.0 a\r\nVia: 1.1 b\r\n\r\n")
                taken, _ = listener.accept()
                with taken:
                    self.assertIn(expected, taken.recv(1000))
            child.stop()

    def test_a_parent_that_is_not_there_is_said(self):
        child = self.encore(forward={"parent": f"http://127.0.0.1:{free_port()}"})
        self.assertEqual(502, get(child.port, "http://some.example/").status)
        with Client(child.port) as client:
            client.send("CONNECT some.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(502, client.read_response("CONNECT").status)

    def test_a_parent_that_answers_nonsense_opens_nothing(self):
        for said in (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", b"nonsense\r\n\r\n",
                     b"x" * 100000, b"HTTP/1.1 200", b""):
            listener = socket.create_server(("127.0.0.1", 0))
            self.addCleanup(listener.close)

            def serve():
                taken, _ = listener.accept()
                with taken:
                    taken.recv(1000)
                    try:
                        taken.sendall(said)
                    except OSError:
                        pass  # it has heard enough
            threading.Thread(target=serve, daemon=True).start()
            child = self.encore(
                forward={"parent": f"http://127.0.0.1:{listener.getsockname()[1]}"})
            with Client(child.port) as client:
                client.send("CONNECT some.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(502, client.read_response("CONNECT").status)
            child.stop()


class Https(Case):
    def test_hosts_that_are_named_are_asked_by_https(self):
        # A parent that answers for all hosts represents them here.
        authority = CertificateAuthority(self)
        context = authority.server_context("mapped.example")
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(DEADLINE)
        self.addCleanup(listener.close)
        said = []

        def serve():
            for _ in range(2):
                taken, _ = listener.accept()
                with taken:
                    said.append(taken.recv(1000))
                    if not said[-1].startswith(b"CONNECT"):
                        taken.sendall(response(b"plain", Connection="close"))
                        continue
                    taken.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    with context.wrap_socket(taken, server_side=True) as secured:
                        said.append(secured.recv(1000))
                        secured.sendall(fresh(b"secured", 600, Connection="close"))
        threading.Thread(target=serve, daemon=True).start()
        child = self.encore(
            forward={"parent": f"http://127.0.0.1:{listener.getsockname()[1]}",
                     "https": ["mapped.example"]},
            admission={"policy": "always"}, upstream={"tls_ca_file": str(authority.certificate)})
        for _ in range(2):  # the second is stored, for the URL that the client asks for
            answer = get(child.port, "http://mapped.example/a")
            self.assertEqual((200, b"secured"), (answer.status, answer.body))
        # Another port is another server.
        self.assertEqual(b"plain", get(child.port, "http://mapped.example:81/b").body)
        self.assertTrue(said[0].startswith(b"CONNECT mapped.example:443 HTTP/1.1\r\n"), said)
        self.assertTrue(said[1].startswith(b"GET /a HTTP/1.1\r\nHost: mapped.example\r\n"), said)
        self.assertTrue(said[2].startswith(b"GET http://mapped.example:81/b HTTP/1.1\r\n"), said)
        self.assertEqual(3, len(said))


class Buffered(Case):
    def reverse(self, origin, **upstream):
        return self.encore(listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
                           origin=[{"servers": [origin.url("")]}], upstream=upstream)

    def test_a_slow_upload_holds_no_connection_until_it_is_there(self):
        origin = Origin(self, default=lambda x: response(x.request.body, Cache_Control="no-store"))
        encore = self.reverse(origin, buffer_requests="64KiB", connections_per_server=2,
                              waiting_per_server=0)
        clients = [Client(encore.port) for _ in range(10)]
        for client in clients:
            self.addCleanup(client.close)
            client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc")
        eventually(lambda: encore.metrics()["encore_transfers"] == 10, "all are under way")
        self.assertEqual(0, encore.metrics()["encore_origin_connects_total"])
        self.assertEqual(200, ask(encore.port).status)  # others are not held up
        for client in clients:
            client.send("def")
            answer = client.read_response("POST")
            self.assertEqual((200, b"abcdef"), (answer.status, answer.body))
        encore.stop()

    def test_what_is_longer_streams_and_arrives_whole(self):
        origin = Origin(self, default=lambda x: response(x.request.body, Cache_Control="no-store"))
        encore = self.reverse(origin, buffer_requests="1KiB")
        for size in (0, 1, 1023, 1024, 1025, 300000):
            body = bytes(i % 251 for i in range(size))
            answer = ask(encore.port, method="POST", body=body)
            self.assertEqual((200, body), (answer.status, answer.body), size)
            with Client(encore.port) as client:
                client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
                for start in range(0, size, 70000):
                    part = body[start:start + 70000]
                    client.send(b"%x\r\n" % len(part) + part + b"\r\n")
                client.send("0\r\n\r\n")
                self.assertEqual(body, client.read_response("POST").body, size)

    def test_a_client_that_waits_for_100_or_leaves_is_no_trouble(self):
        origin = Origin(self, default=lambda x: response(x.request.body, Cache_Control="no-store"))
        encore = self.reverse(origin, buffer_requests="64KiB")
        with Client(encore.port) as client:
            client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na")
            eventually(lambda: encore.metrics()["encore_transfers"] == 1, "it is under way")
        eventually(lambda: encore.metrics()["encore_transfers"] == 0, "it is over")
        self.assertEqual(0, origin.count())
        with Client(encore.port) as client:
            client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n"
                        "Expect: 100-continue\r\n\r\n")
            eventually(lambda: encore.metrics()["encore_origin_connects_total"] == 1, "it is asked")
            client.send("abc")
            self.assertEqual(b"abc", client.read_response("POST").body)

    def test_a_post_that_is_wholly_here_goes_to_another_server(self):
        origin = Origin(self, default=lambda x: response(x.request.body, Cache_Control="no-store"))
        encore = self.encore(listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
                             origin=[{"servers": [f"http://127.0.0.1:{free_port()}",
                                                  origin.url("")]}],
                             upstream={"buffer_requests": "64KiB"})
        for _ in range(4):
            self.assertEqual(b"once", ask(encore.port, method="POST", body=b"once").body)
        self.assertEqual(4, origin.count())
