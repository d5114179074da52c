"""Clients that begin with TLS badly: too slow, too many, cut, split, of something else."""

import contextlib
import socket
import ssl
import threading
import time

from client import Client, field
from harness import SLOWDOWN, eventually
from origin import fresh
from tls import TlsCase, ask_on, hello, raw

MEGABYTE = 1 << 20


class Hostile(TlsCase):
    def still_well(self):
        self.assertEqual(b"page", self.ask().body)

    def open(self, data=b"", source=None):
        sock = socket.socket()
        self.addCleanup(sock.close)
        if source:
            sock.bind((source, 0))
        sock.settimeout(30 * SLOWDOWN)
        sock.connect(("127.0.0.1", self.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if data:
            sock.sendall(data)
        return sock

    def ended(self, sock):
        with contextlib.suppress(ConnectionError):
            while sock.recv(65536):
                pass
        return True

    def test_a_handshake_has_its_time_whatever_comes_of_it(self):
        self.serve(timeouts={"tls_handshake": "600ms"})
        whole = hello()
        silent, half = self.open(), self.open(whole[:len(whole) // 2])
        # Until it is closed it gets a byte now and then.
        drip, dripped = self.open(), 0
        with contextlib.suppress(OSError):
            while dripped < len(whole) - 1:
                drip.sendall(whole[dripped:dripped + 1])
                dripped += 1
                time.sleep(0.05)
        self.assertLess(dripped, len(whole) - 1)
        self.assertTrue(self.ended(silent) and self.ended(half))
        eventually(lambda: self.counter("tls_handshake_failures_total") == 3, "they are counted")
        eventually(lambda: self.counter("tls_handshakes") == 0, "none is under way")
        self.still_well()

    def test_a_handshake_that_is_cut_anywhere_leaves_nothing(self):
        # Unlimited: all of them may be there before the first is handled.
        self.serve(limits={"tls_handshakes_per_client": 0})
        whole = hello()
        cuts = range(len(whole) + 1) if SLOWDOWN == 1 else range(0, len(whole), 17)
        for cut in cuts:
            sock = self.open(whole[:cut])
            if cut % 3 == 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.close()
        eventually(lambda: self.counter("tls_handshake_failures_total") == len(cuts),
                   "all have failed")
        eventually(lambda: self.counter("tls_handshakes") == 0, "none is under way")
        # One is that of this page.
        eventually(lambda: self.counter("client_connections") == 0, "none is open")
        self.still_well()

    def test_a_handshake_in_small_pieces_is_a_handshake(self):
        self.serve()
        for size in (1, 2, 5, 100, 300):
            with self.open() as sock:
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                by = self.authority.trusting().wrap_bio(incoming, outgoing,
                                                        server_hostname="www.example")
                sent, said = False, b""
                while b"page" not in said:
                    try:
                        if not sent:
                            by.do_handshake()
                            by.write(b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n")
                            sent = True
                        said += by.read(65536)
                    except ssl.SSLWantReadError:
                        while piece := outgoing.read(size):
                            sock.sendall(piece)
                        incoming.write(sock.recv(65536))
            self.assertTrue(said.startswith(b"HTTP/1.1 200"), said)

    def test_garbage_is_ended_with_an_alert_at_most(self):
        self.serve()
        whole = hello()
        for garbage in (b"\x16" * 16384, b"\0" * 16384, b"\xff" * 16384, b"garbage" * 3000,
                        b"\x16\x03\x01\x40\x00" + b"\x01" * 16384,
                        b"\x16\x03\x01\xff\xff" + b"\x01" * 16384, whole + b"x" * 16384,
                        whole[:60] + b"\xff" * 16384, b"\x15\x03\x01\x00\x02\x02\x28" * 300):
            said = raw(self.port, garbage)
            self.assertNotIn(b"garbage", said)
            self.assertLess(len(said), 8192)
        self.still_well()

    def test_a_plain_request_is_told_what_is_spoken_here(self):
        self.serve()
        for method in ("GET", "HEAD", "POST", "PUT"):
            said = raw(self.port, f"{method} /x HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            head, _, body = said.partition(b"\r\n\r\n")
            self.assertTrue(head.startswith(b"HTTP/1.1 400 Bad Request\r\n"), said)
            self.assertIn(f"Content-Length: {len(body)}\r\n".encode(), head + b"\r\n")
            self.assertIn(b"https", body)
        self.assertEqual(4, self.counter("tls_plain_http_total"))
        self.still_well()

    def test_tls_on_a_plain_port_is_a_bad_request(self):
        self.serve(plain={})
        said = raw(self.plain_port, hello("secret.name.example"))
        self.assertTrue(said.startswith(b"HTTP/1.1 400 Bad Request\r\n"), said)
        self.assertNotIn(b"secret", said)
        self.assertNotIn(b"\x16\x03", said)

    def test_one_client_has_so_many_handshakes_under_way(self):
        self.serve(limits={"tls_handshakes_per_client": 3})
        held = [self.open(hello()[:50]) for _ in range(3)]
        eventually(lambda: self.counter("tls_handshakes") == 3, "they are under way")
        self.assertTrue(self.ended(self.open()))
        eventually(lambda: self.counter("tls_handshakes_refused_total") == 1, "it is counted")
        # Others are not held up, nor is who has come in.
        with self.client(source="127.0.0.2") as other:
            self.assertEqual(b"page", ask_on(other, "/").body)
            held[0].close()
            eventually(lambda: self.counter("tls_handshakes") == 2, "one has gone")
            with self.client() as client:
                eventually(lambda: self.counter("tls_handshakes") == 2, "and one is done")
                self.assertEqual(b"page", ask_on(client, "/").body)
            self.assertEqual(b"page", ask_on(other, "/").body)

    def test_where_too_many_are_under_way_the_oldest_gives_way(self):
        self.serve(workers={"count": 1}, limits={"unfinished_heads": 4})
        held = [self.open(hello()[:50]) for _ in range(4)]
        eventually(lambda: self.counter("tls_handshakes") == 4, "they are under way")
        held.append(self.open(hello()[:50]))
        self.assertTrue(self.ended(held[0]))
        eventually(lambda: self.counter("client_heads_given_up_total") == 1, "it is counted")
        self.still_well()

    def test_who_leaves_in_the_midst_of_a_record_disturbs_nobody(self):
        self.serve(plain={})
        go = threading.Event()
        body = b"x" * (4 * MEGABYTE)
        self.origin.routes["/slow"] = lambda e: (e.send(fresh(body)[:MEGABYTE]), e.wait(go),
                                                 e.send(fresh(body)[MEGABYTE:]))[3:] or None
        clients = [self.client() for _ in range(6)]
        for client in clients:
            client.send("GET /slow HTTP/1.1\r\nHost: www.example\r\n\r\n")
        with Client(self.plain_port) as plain:
            plain.send("GET /slow HTTP/1.1\r\nHost: www.example\r\n\r\n")
            self.assertEqual(200, clients[0].read_head().status)
            clients[1].read_exactly(1000)
            clients[1].reset()
            clients[2].close()
            socket.socket(fileno=clients[3].sock.detach()).close()  # without close_notify
            go.set()
            self.assertEqual(body, clients[0].read_exactly(len(body)))
            for client in clients[4:]:
                self.assertEqual(body, client.read_response().body)
            self.assertEqual(body, plain.read_response().body)
        for client in clients:
            client.close()
        self.still_well()

    def test_a_client_that_ends_without_a_word_gets_nothing_more_and_is_forgotten(self):
        self.serve()
        for after in (b"", b"GET / HT"):
            client = self.client()
            if after:
                client.send(after)
            socket.socket(fileno=client.sock.detach()).shutdown(socket.SHUT_WR)
        eventually(lambda: self.counter("client_connections") == 0, "they are gone")

    def test_a_slow_reader_by_tls_is_paced_and_gets_all(self):
        self.serve()
        body = bytes(range(251)) * 20000
        self.origin.routes["/large"] = fresh(body)
        for _ in range(3):
            with self.client(receive_buffer=4096) as client:
                client.send("GET /large HTTP/1.1\r\nHost: www.example\r\n\r\n")
                answer = client.read_head()
                self.assertEqual(str(len(body)), field(answer, "content-length"))
                got = b""
                while len(got) < len(body):
                    got += client.read_exactly(min(70001, len(body) - len(got)))
                self.assertEqual(body, got)

    def test_a_password_is_asked_for_by_tls_alone_where_http_is_redirected(self):
        users = self.directory / "users"
        users.write_text("a:$6$abc$" + "x" * 86 + "\n")
        self.serve(plain={"redirect_https": True, "users_file": str(users)},
                   listen={"users_file": str(users)})
        with Client(self.plain_port) as client:
            self.assertEqual(301, ask_on(client, "/").status)
        self.assertEqual(401, self.ask().status)
