"""Ten thousand TLS connections across a hundred reloads: none fails, tickets of before still resume."""

import itertools
import signal
import socket
import ssl
import threading

from client import Client
from harness import eventually, sanitized
from tls import SecureClient, TlsCase, ask_on

CONNECTIONS, RELOADS, THREADS = (500, 10, 4) if sanitized() else (10000, 100, 6)


class Reload(TlsCase):
    def reload(self):
        done = self.counter("reloads_total")
        self.proxy.write_config()
        self.proxy.signal(signal.SIGHUP)
        eventually(lambda: self.counter("reloads_total") == done + 1, "the reload is done")

    def test_no_connection_fails_over_reloads_and_tickets_of_before_resume(self):
        pairs = [self.pair, self.authority.pair("www.example"),
                 self.authority.pair("www.example", rsa=True)]
        self.serve()
        contexts = [self.authority.trusting(), self.authority.trusting(
            maximum_version=ssl.TLSVersion.TLSv1_2)]
        first = []
        for context in contexts:
            with self.client(context=context) as client:
                ask_on(client, "/page")
                first.append(client.sock.session)
        numbers, failures = itertools.count(), []

        def connect(context, session):
            while (number := next(numbers)) < CONNECTIONS and not failures:
                try:
                    again = session if number % 3 else None
                    with SecureClient(self.port, context, "www.example", again) as client:
                        for _ in range(1 + number % 2):
                            if ask_on(client, "/page").body != b"page":
                                raise AssertionError("another body")
                        if again is not None and not client.sock.session_reused:
                            raise AssertionError("a ticket was not taken up")
                        session = client.sock.session
                except Exception as error:  # pylint: disable=broad-except
                    failures.append(f"connection {number}: {error!r}")

        threads = [threading.Thread(target=connect, args=(contexts[n % 2], first[n % 2]))
                   for n in range(THREADS)]
        with self.client() as kept:
            for thread in threads:
                thread.start()
            for number in range(RELOADS):
                self.proxy.sections["listen"][0]["tls"] = [
                    pairs[number % 3], pairs[(number + 1) % 3]]
                self.reload()
                self.assertEqual(b"page", ask_on(kept, "/page").body)
            for thread in threads:
                thread.join()
        self.assertEqual([], failures)
        self.assertGreaterEqual(self.counter("tls_handshakes_total"), CONNECTIONS)
        self.assertEqual(0, self.counter("tls_handshake_failures_total"))
        for context, session in zip(contexts, first):
            with self.client(context=context, session=session) as client:
                ask_on(client, "/page")
                self.assertTrue(client.sock.session_reused)

    def test_a_handshake_under_way_ends_with_what_it_was_begun_with(self):
        self.serve()
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as sock:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            by = self.authority.trusting().wrap_bio(incoming, outgoing,
                                                    server_hostname="www.example")
            reloaded = False
            while True:
                try:
                    by.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    begun = outgoing.read()
                    sock.sendall(begun[:10])
                    if not reloaded:
                        eventually(lambda: self.counter("tls_handshakes") == 1, "it is begun")
                        self.proxy.sections["listen"][0]["tls"] = [
                            self.authority.pair("other.example")]
                        self.reload()
                        reloaded = True
                    sock.sendall(begun[10:])
                    incoming.write(sock.recv(65536))
            self.assertEqual((("DNS", "www.example"),), by.getpeercert()["subjectAltName"])
        with self.client("other.example") as client:
            self.assertEqual(["other.example"], client.shown())

    def test_a_listener_goes_over_to_tls_and_back_and_keeps_who_is_there(self):
        self.serve(plain={})
        plain, secure = Client(self.plain_port), self.client()
        first, second = self.proxy.sections["listen"]
        for _ in range(4):
            first["tls"], second["tls"] = second.get("tls", []), first.get("tls", [])
            self.reload()
            for client in (plain, secure):
                self.assertEqual(b"page", ask_on(client, "/page").body)
            secure_port = self.plain_port if second["tls"] else self.port
            plain_port = self.port if second["tls"] else self.plain_port
            with Client(plain_port) as client:
                self.assertEqual(b"page", ask_on(client, "/page").body)
            with SecureClient(secure_port, self.authority.trusting(), "www.example") as client:
                self.assertEqual(b"page", ask_on(client, "/page").body)
        plain.close()
        secure.close()
