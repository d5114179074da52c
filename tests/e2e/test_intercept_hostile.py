"""Connections that are not decrypted, and hostile peers: clients that do not trust us or speak
another protocol, half a ClientHello, garbage, many names, ends between two bytes."""

import contextlib
import os
import random
import signal
import socket
import ssl
import threading
import unittest

from client import Client, NoResponse, field
from harness import eventually, sanitized
from intercept import HOST, InterceptCase, RawServer, half_close
from origin import fresh


class Spliced(InterceptCase):
    def check_spliced(self, encore, origin, **options):
        client = self.inside(encore, origin, self.unprepared(), **options)
        self.assertEqual("encore test CA", client.issuer())
        self.assertEqual(200, client.get("/").status)
        return client

    def test_what_is_not_named_is_left_as_it_is(self):
        self.names.answers["other.example"] = [["127.0.0.1"]]
        origin = self.start_origin(name="other.example")
        encore = self.proxy(origin)
        self.check_spliced(encore, origin, host="other.example")
        self.assertEqual(1, origin.connections)

    def test_what_must_never_be_is_left_as_it_is(self):
        self.hosts = [HOST]
        origin = self.start_origin()
        encore = self.proxy(origin, intercept={"never": [HOST]})
        self.check_spliced(encore, origin)

    def test_another_port_is_left_as_it_is(self):
        origin, other = self.start_origin(), self.start_origin()
        encore = self.proxy(origin, other, intercept={"ports": [other.port]})
        self.check_spliced(encore, origin)

    def test_without_the_section_nothing_is_decrypted(self):
        origin = self.start_origin()
        settings = self.settings(origin)
        del settings["intercept"]
        encore = self.encore(**settings)
        self.check_spliced(encore, origin)
        with Client(encore.port) as client:
            client.send("GET /ca.crt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            self.assertEqual(400, client.read_response().status)

    def test_another_name_than_the_connects_is_left_as_it_is(self):
        origin = self.start_origin(name="front.example")
        encore = self.proxy(origin)
        context = self.unprepared()
        client = self.inside(encore, origin, context, sni="front.example")
        self.assertEqual("encore test CA", client.issuer())
        self.assertEqual(1, encore.metrics()["encore_intercepts_spliced_total"])

    def test_no_name_is_left_as_it_is(self):
        server = RawServer(self)
        encore = self.proxy(server)
        hello = self.hello(name=None)
        client = self.connect(encore, server)
        client.send(hello)
        self.assertEqual(hello, client.read_exactly(len(hello)))

    def test_other_protocols_are_left_as_they_are(self):
        server = RawServer(self)
        encore = self.proxy(server)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.set_alpn_protocols(["h2"])
        for words in (b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-x\r\n", b"\x00", os.urandom(70_000),
                      b"\x16\x03\x01\x00\x00", b"\x16\x03\x01\xff\xff" + b"x" * 20_000,
                      self.hello(context=old)):
            client = self.connect(encore, server)
            client.send(words)
            self.assertEqual(words, client.read_exactly(len(words)))
            client.close()

    def test_who_offers_the_older_http_alone_is_decrypted(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        for offered in (["http/1.0"], ["h2", "http/1.0"], ["http/1.0", "http/1.1"]):
            context = self.trusting()
            context.set_alpn_protocols(offered)
            client = self.inside(encore, origin, context=context)
            self.assertRegex(client.issuer(), "^encore on ")
            self.assertEqual(offered[-1], client.sock.selected_alpn_protocol())
            self.assertEqual(b"packages", client.get("/one").body)
        self.assertEqual(1, origin.count())

    def test_a_server_that_speaks_first_is_heard(self):
        server = RawServer(self, b"220 ready\r\n")
        encore = self.proxy(server, intercept={"hello_wait": "100ms"})
        client = self.connect(encore, server)
        self.assertEqual(b"220 ready", client.read_until(b"\r\n"))
        client.send(b"EHLO\r\n")
        self.assertEqual(b"EHLO", client.read_until(b"\r\n"))

    def test_bytes_sent_with_the_connect_are_not_lost(self):
        server = RawServer(self)
        encore = self.proxy(server)
        authority = f"{HOST}:{server.port}"
        with Client(encore.port) as client:
            client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\nearly")
            self.assertEqual(200, client.read_response("CONNECT").status)
            self.assertEqual(b"early", client.read_exactly(5))

    def test_a_host_that_is_not_there_ends_the_connection(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        origin.stop()
        client = self.connect(encore, origin)
        client.send(b"no TLS")
        self.assertEqual(b"", client.read_to_end())
        self.assertEqual("origin-unreachable", encore.access_records(1)[0]["outcome"])


class Rejected(InterceptCase):
    def test_a_client_that_does_not_trust_us_goes_through_from_then_on(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        with self.assertRaises(ssl.SSLError):
            self.inside(encore, origin, self.unprepared())
        eventually(lambda: encore.metrics()["encore_intercepts_rejected_total"] == 1, "it is noted")
        self.assertIn(f"127.0.0.1 does not accept our certificate for {HOST}", encore.output())
        shown = encore.stats()["intercept"]
        self.assertEqual([("127.0.0.1", HOST)],
                         [(pair["client"], pair["host"]) for pair in shown["rejected_newest"]])
        self.assertEqual((1, 1), (shown["rejected_pairs"], shown["certificates_kept"]))
        for _ in range(2):
            client = self.inside(encore, origin, self.unprepared())
            self.assertEqual("encore test CA", client.issuer())
            self.assertEqual(200, client.get("/").status)
        # Another client is decrypted as before, and for this one another host.
        self.assertEqual(200, self.inside(encore, origin, source="127.0.0.2").get("/").status)
        self.names.answers["a.many.example"] = [["127.0.0.1"]]
        self.inside(encore, origin, host="a.many.example")
        self.assertEqual(1, encore.output().count("does not accept our certificate"))

    def test_it_goes_on_to_fail_where_that_is_wanted(self):
        origin = self.start_origin()
        encore = self.proxy(origin, intercept={"on_client_reject": "fail"})
        for _ in range(3):
            with self.assertRaises(ssl.SSLError):
                self.inside(encore, origin, self.unprepared())
        self.assertEqual(200, self.inside(encore, origin).get("/").status)
        self.assertEqual(0, origin.connections - 1)

    def test_who_looks_at_the_certificate_afterwards_and_leaves_is_known(self):
        # As GnuTLS's wget and Node do.
        context = self.unprepared()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        origin = self.start_origin()
        encore = self.proxy(origin)
        self.inside(encore, origin, context).close()
        eventually(lambda: encore.metrics()["encore_intercepts_rejected_total"] == 1, "it is noted")
        self.assertEqual("encore test CA",
                         self.inside(encore, origin, self.unprepared()).issuer())

    def test_what_is_opened_in_advance_is_told_from_another_machine_behind_the_address(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        in_advance = self.inside(encore, origin)
        used = self.inside(encore, origin)
        self.assertEqual(200, used.get("/").status)
        used.close()
        in_advance.close()
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "both are gone")
        self.assertEqual(0, encore.metrics()["encore_intercepts_rejected_total"])
        self.inside(encore, origin).close()
        eventually(lambda: encore.metrics()["encore_intercepts_rejected_total"] == 1, "it is noted")

    def test_what_a_browser_that_ends_had_opened_beside_what_it_used_is_none(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        noted = "encore_intercepts_rejected_total"
        used = self.inside(encore, origin)
        self.assertEqual(200, used.get("/").status)
        beside = self.inside(encore, origin)
        # All together, and more than one: it has ended.
        for client in (beside, self.inside(encore, origin), used):
            client.close()
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "all are gone")
        self.assertEqual(0, encore.metrics()[noted])
        # Another machine behind its address that checks the certificate afterwards comes through,
        # though the browser stays: its retry distinguishes it.
        used = self.inside(encore, origin)
        self.assertEqual(200, used.get("/").status)
        self.inside(encore, origin).close()
        eventually(lambda: encore.metrics()[noted] == 1, "it is noted")

    def test_each_request_on_a_kept_connection_is_use(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        used = self.inside(encore, origin)
        self.assertEqual(200, used.get("/").status)
        for _ in range(3):
            in_advance = self.inside(encore, origin)
            self.assertEqual(200, used.get("/").status)
            in_advance.close()
        eventually(lambda: encore.metrics()["encore_client_connections"] == 1, "they are gone")
        self.assertEqual(0, encore.metrics()["encore_intercepts_rejected_total"])

    def test_who_says_no_behind_the_handshake_has_refused_whatever_is_used(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        used = self.inside(encore, origin)
        self.assertEqual(200, used.get("/").status)
        client = self.connect(encore, origin)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.trusting().wrap_bio(incoming, outgoing, server_hostname=HOST)

        done = False
        while not done:
            try:
                session.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            client.send(outgoing.read())
            if not done:
                incoming.write(client.sock.recv(65536))
        eventually(lambda: encore.metrics()["encore_tls_handshakes"] == 0, "hands are shaken")
        self.assertEqual(200, used.get("/").status)
        # A fatal alert, as of one that verifies now: here of one that cannot read a record.
        incoming.write(b"\x17\x03\x03\x00\x20" + bytes(32))
        with self.assertRaises(ssl.SSLError):
            session.read()
        client.send(outgoing.read())
        eventually(lambda: encore.metrics()["encore_intercepts_rejected_total"] == 1, "it is noted")

    def test_who_refuses_beside_what_is_used_is_known_at_once(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        used = self.inside(encore, origin)
        self.assertEqual(200, used.get("/").status)
        with self.assertRaises(ssl.SSLError):
            self.inside(encore, origin, self.unprepared())
        eventually(lambda: encore.metrics()["encore_intercepts_rejected_total"] == 1, "it is noted")

    def test_who_only_leaves_beside_what_is_used_has_not_refused(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        used = self.inside(encore, origin)
        self.assertEqual(200, used.get("/").status)
        client = self.connect(encore, origin)
        client.send(self.hello())
        self.assertTrue(client.sock.recv(65536))  # our response to that
        client.close()
        eventually(lambda: encore.metrics()["encore_tls_handshakes"] == 0, "it is over")
        self.assertEqual(0, encore.metrics()["encore_intercepts_rejected_total"])
        self.assertEqual(200, self.inside(encore, origin).get("/").status)

    def test_who_speaks_nothing_that_we_do_goes_through_from_then_on(self):
        origin = self.start_origin()
        encore = self.proxy(origin)

        def of_another_group():
            context = ssl.create_default_context(cafile=self.public.certificate)
            context.set_ecdh_curve("secp384r1")
            return context
        with self.assertRaises(ssl.SSLError):
            self.inside(encore, origin, of_another_group())
        eventually(lambda: encore.metrics()["encore_intercepts_rejected_total"] == 1, "it is noted")
        self.assertEqual("encore test CA",
                         self.inside(encore, origin, of_another_group()).issuer())

    def test_it_is_forgotten_after_a_time_and_kept_over_a_reload(self):
        origin = self.start_origin()
        encore = self.proxy(origin, intercept={"reject_memory": "1s"})

        def reject():
            with self.assertRaises(ssl.SSLError):
                self.inside(encore, origin, self.unprepared())

        reject()
        eventually(lambda: not self.is_spliced(encore, origin), "it is forgotten")
        encore.sections["intercept"]["reject_memory"] = "1h"
        encore.write_config()
        encore.signal(1)
        eventually(lambda: self.stays_spliced(encore, origin, reject), "it is for an hour")
        encore.signal(1)
        self.assertTrue(self.is_spliced(encore, origin))
        encore.sections["intercept"]["reject_memory"] = "59m"
        encore.write_config()
        encore.signal(1)
        eventually(lambda: not self.is_spliced(encore, origin), "a shorter memory is a new one")

    def stays_spliced(self, encore, origin, reject):
        if not self.is_spliced(encore, origin):
            reject()
        import time
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            if not self.is_spliced(encore, origin):
                return False
        return True


class Pieces(InterceptCase):
    def test_a_hello_may_come_in_any_pieces(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        hello = self.hello()
        for cut in [1, 2, 4, 5, 6, 8, 9, 10, 43, 44, len(hello) // 2, len(hello) - 1]:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            session = self.trusting().wrap_bio(incoming, outgoing, server_hostname=HOST)
            with Client(encore.port) as client:
                client.send(f"CONNECT {HOST}:{origin.port} HTTP/1.1\r\nHost: x\r\n\r\n")
                client.read_response("CONNECT")
                drive(client, session, incoming, outgoing, session.do_handshake, cut)
                session.write(f"GET / HTTP/1.1\r\nHost: {HOST}:{origin.port}\r\n\r\n".encode())
                client.send(outgoing.read())
                data = drive(client, session, incoming, outgoing, lambda: session.read(65536))
                self.assertTrue(data.startswith(b"HTTP/1.1 200"))

    def test_the_hello_may_come_with_the_connect(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.trusting().wrap_bio(incoming, outgoing, server_hostname=HOST)
        with self.assertRaises(ssl.SSLWantReadError):
            session.do_handshake()
        with Client(encore.port) as client:
            authority = f"{HOST}:{origin.port}"
            client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode()
                        + outgoing.read())
            client.read_response("CONNECT")
            incoming.write(client.buffer)
            client.buffer = b""
            drive(client, session, incoming, outgoing, session.do_handshake)
            session.write(f"GET / HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
            client.send(outgoing.read())
            data = drive(client, session, incoming, outgoing, lambda: session.read(65536))
            self.assertTrue(data.startswith(b"HTTP/1.1 200"))

    def test_half_a_hello_ends_in_time(self):
        origin = self.start_origin()
        encore = self.proxy(origin, timeouts={"client_header": "1s"})
        hello = self.hello()
        clients = [self.connect(encore, origin) for _ in range(5)]
        for client, size in zip(clients, (1, 5, 6, 100, len(hello) - 1)):
            client.send(hello[:size])
        for client in clients:
            self.assertEqual(b"", client.read_to_end())
        self.assertEqual(0, origin.connections)
        self.assertEqual(5, encore.metrics()["encore_intercepts_failed_total"])

    def test_a_client_that_leaves_anywhere_leaves_nothing(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        hello = self.hello()
        draw = random.Random(7)
        for _ in range(100):
            client = self.connect(encore, origin)
            client.send(hello[:draw.randrange(len(hello) + 1)])
            draw.choice([client.close, client.reset, lambda: half_close(client.sock)])()
            client.close()
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "all have ended")
        self.assertEqual(200, self.inside(encore, origin, source="127.0.0.9").get("/").status)
        self.assertEqual(1, origin.connections)

    def test_garbage_within_tls_is_no_request(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        client = self.inside(encore, origin)
        client.send(b"\x00\x01\x02 garbage\r\n\r\n")
        self.assertEqual(400, client.read_response().status)
        client = self.inside(encore, origin)
        client.get("/")
        raw = client.sock.unwrap
        socket.socket(fileno=os.dup(client.sock.fileno())).sendall(os.urandom(300))
        with self.assertRaises((NoResponse, OSError)):
            client.read_response()
        del raw
        self.assertEqual(1, origin.count())

    def test_another_host_than_the_connects_is_421(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        for host in ("other.example", HOST, f"{HOST}:80", f"x.{HOST}:{origin.port}",
                     f"{HOST}.:{origin.port}"):
            client = self.inside(encore, origin)
            answer = client.get("/", host=host)
            self.assertEqual(421, answer.status, host)
            self.assertIn("detail=misdirected", field(answer, "Cache-Status"))
            self.assertTrue(client.at_end())
        whole = f"https://{HOST}:{origin.port}/"
        self.assertEqual(200, self.inside(encore, origin).get(whole, host="other.example").status)
        self.assertEqual(421, self.inside(encore, origin).get("https://other.example/").status)
        self.assertEqual(400, self.inside(encore, origin).get(f"http://{HOST}/").status)
        client = self.inside(encore, origin)
        self.assertEqual(405, client.get(client.authority, "CONNECT").status)
        self.assertEqual(200, self.inside(encore, origin).get("/", host=HOST.upper()
                                                              + f":{origin.port}").status)
        self.assertEqual({"/"}, {request.target for request in origin.requests})


class Limits(InterceptCase):
    """Handshakes behind CONNECTs count among the client's handshakes in progress."""

    def test_one_client_has_so_many_handshakes_under_way(self):
        origin = self.start_origin()
        encore = self.proxy(origin, limits={"tls_handshakes_per_client": 3})
        count = encore.metrics
        hello = self.hello()
        held = []
        for cut in (1, 50, len(hello)):  # the whole of one: we wait for what follows it
            held.append(self.connect(encore, origin))
            held[-1].send(hello[:cut])
        eventually(lambda: count()["encore_tls_handshakes"] == 3, "they are under way")
        late = self.connect(encore, origin)
        late.send(hello)
        wait_for_end(late)
        self.assertEqual(1, count()["encore_tls_handshakes_refused_total"])
        denied = [r for r in encore.access_records(1) if r["outcome"] == "denied"]
        self.assertEqual(["too-many-handshakes"], [r["detail"] for r in denied])
        # Others are not held up, what is no TLS is none of these, and one that ends makes room.
        other = self.inside(encore, origin, source="127.0.0.2")
        self.assertEqual(200, other.get("/").status)
        held[0].close()
        eventually(lambda: count()["encore_tls_handshakes"] == 2, "one has gone")
        self.assertEqual(200, self.inside(encore, origin).get("/").status)
        self.assertEqual(2, count()["encore_tls_handshakes"])
        for client in held[1:]:
            client.close()
        eventually(lambda: count()["encore_tls_handshakes"] == 0, "none is left")

    def test_where_too_many_are_under_way_the_oldest_gives_way(self):
        origin = self.start_origin()
        encore = self.proxy(origin, workers={"count": 1}, limits={"unfinished_heads": 4})
        held = []
        for _ in range(4):
            held.append(self.connect(encore, origin))
            held[-1].send(self.hello())
        eventually(lambda: encore.metrics()["encore_tls_handshakes"] == 4, "they are under way")
        held.append(self.connect(encore, origin))
        held[-1].send(self.hello())
        wait_for_end(held[0])
        self.assertEqual(1, encore.metrics()["encore_client_heads_given_up_total"])

    def test_who_is_inside_is_no_handshake_any_more_however_the_hello_came(self):
        origin = self.start_origin()
        encore = self.proxy(origin, workers={"count": 1}, limits={"unfinished_heads": 4})
        inside = []
        for _ in range(8):
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            session = self.trusting().wrap_bio(incoming, outgoing, server_hostname=HOST)
            client = self.connect(encore, origin)
            drive(client, session, incoming, outgoing, session.do_handshake, cut=50)
            inside.append((client, session, incoming, outgoing))
        eventually(lambda: encore.metrics()["encore_intercepts_total"] == 8, "all are inside")
        self.assertEqual(0, encore.metrics()["encore_client_heads_given_up_total"])
        for client, session, incoming, outgoing in inside:
            session.write(f"GET / HTTP/1.1\r\nHost: {HOST}:{origin.port}\r\n\r\n".encode())
            client.send(outgoing.read())
            data = drive(client, session, incoming, outgoing, lambda: session.read(65536))
            self.assertTrue(data.startswith(b"HTTP/1.1 200"))

    def test_a_handshake_that_is_done_in_a_drain_is_the_end(self):
        origin = self.start_origin()
        encore = self.proxy(origin, timeouts={"drain": "10m"})
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.trusting().wrap_bio(incoming, outgoing, server_hostname=HOST)
        client = self.connect(encore, origin)
        with self.assertRaises(ssl.SSLWantReadError):
            session.do_handshake()
        client.send(outgoing.read())
        eventually(lambda: encore.metrics()["encore_tls_handshakes"] == 1, "it is under way")
        encore.signal(signal.SIGTERM)
        eventually(lambda: encore.admin("/readyz")[0] == 503, "it drains")
        drive(client, session, incoming, outgoing, session.do_handshake)
        encore.process.wait(60)

    def test_a_handshake_has_its_time(self):
        origin = self.start_origin()
        encore = self.proxy(origin, timeouts={"tls_handshake": "500ms", "client_header": "1h"})
        client = self.connect(encore, origin)
        client.send(self.hello())
        wait_for_end(client)
        eventually(lambda: encore.metrics()["encore_tls_handshakes"] == 0, "none is left")


class Many(InterceptCase):
    def test_five_thousand_names_take_little_memory(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        context = self.trusting()
        context.check_hostname = True
        failures = []

        def visit(numbers):
            for number in numbers:
                try:
                    self.visit(encore, origin, context, f"n{number}.many.example")
                except Exception as error:  # noqa: BLE001: said below
                    failures.append((number, error))
                    return

        def all_of(numbers):
            threads = [threading.Thread(target=visit, args=(numbers[part::4],)) for part in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual([], failures)

        all_of(range(0, 1000))
        before = encore.resident_bytes()
        all_of(range(1000, 5000))
        grown = encore.resident_bytes() - before
        eventually(lambda: encore.metrics()["encore_intercepts_total"] == 5000, "all were served")
        self.assertEqual(0, encore.metrics()["encore_intercepts_rejected_total"])
        # A sanitizer keeps what was freed.
        more = 256 << 20 if sanitized() else 0
        self.assertLess(grown, more + 4000 * 2048, "a name takes a kilobyte")
        # Once more: nothing is signed anew.
        before = encore.resident_bytes()
        all_of(range(4000, 5000))
        self.assertLess(encore.resident_bytes() - before, more + (2 << 20))
        self.assertEqual(0, origin.connections)

    def visit(self, encore, origin, context, name):
        with Client(encore.port) as client:
            client.send(f"CONNECT {name}:{origin.port} HTTP/1.1\r\nHost: x\r\n\r\n")
            client.read_response("CONNECT")
            with context.wrap_socket(client.sock, server_hostname=name) as secured:
                secured.sendall(b"x")  # a silent client may have rejected it
                self.assertEqual((("DNS", name),), secured.getpeercert()["subjectAltName"])


def drive(client, session, incoming, outgoing, step, cut=None):
    """Calls `step` until it is done, with what goes to and fro; `cut`: of the first flight by itself."""
    while True:
        try:
            done = step()
            client.send(outgoing.read())
            return done
        except ssl.SSLWantReadError:
            data = outgoing.read()
            if data and cut:
                client.send(data[:cut])
                # In a read of its own: the proxy has an answer to none of it yet.
                eventually(lambda: unread(client.sock) == 0, "it was sent")
                data, cut = data[cut:], None
            client.send(data)
            received = client.sock.recv(65536)
            if not received:
                raise NoResponse(b"")
            incoming.write(received)


def wait_for_end(client):
    """The end of the connection, by a reset or not."""
    with contextlib.suppress(OSError):
        client.read_to_end()


def unread(sock):
    """Bytes that were sent and have not arrived."""
    import fcntl
    import struct
    import termios
    return struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0" * 4))[0]


if __name__ == "__main__":
    unittest.main()
