"""Requests that a stop waits for, and others: silence, and a second stop."""

import os
import select
import signal
import threading
import unittest

import websocket
from client import Client, NoResponse
from halfway import HalfwayCase
from harness import eventually
from origin import Origin, response
from test_tunnel import EchoServer


class Drain(HalfwayCase):
    def test_a_second_signal_ends_a_drain_at_once(self):
        for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT),
                              (signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGTERM)):
            route, _ = self.halfway(os.urandom(100_000))
            origin = Origin(self, {"/page": route})
            # Nothing but the signal would end it in the time of this test.
            encore = self.encore(timeouts={"drain": "10m", "origin_idle": "0s"})
            client = self.begin(encore, origin, "/page")
            encore.signal(first)
            eventually(lambda: "draining" in encore.output(), "the drain has begun")
            self.assertIsNone(encore.process.poll())
            encore.expect_exit = 1
            encore.signal(second)
            self.assertEqual(1, encore.wait_for_exit())
            self.assertIn("while draining: exits immediately", encore.output())
            with self.assertRaises(NoResponse):
                client.read_exactly(100_000)

    def silent_client(self, encore, kind, origin, echo):
        """A client with a request in progress on which nothing moves."""
        client = Client(encore.port)
        self.addCleanup(client.close)
        if kind == "tunnel":
            authority = f"127.0.0.1:{echo.port}"
            client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
            self.assertEqual(200, client.read_response("CONNECT").status)
        elif kind == "chat":
            client.request(origin.url("/chat"), fields=websocket.handshake_fields())
            self.assertEqual(101, client.read_head().status)
        elif kind == "half":
            client.request(origin.url("/half"))
            client.read_head()
            client.read_exactly(500)
        elif kind == "upload":
            connections = origin.connections
            client.send(f"POST {origin.url('/upload')} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                        "Content-Length: 9\r\n\r\nhalf")
            eventually(lambda: origin.connections > connections, "it is on its way")
        else:
            client.request(origin.url(f"/{kind}"))
            eventually(lambda: origin.count(f"/{kind}") == 1, "it is asked")
        return client

    def test_what_is_silent_ends_half_of_a_drain_in_and_the_rest_goes_on(self):
        half, _ = self.halfway(b"x" * 1000)
        held = threading.Event()

        def hold(exchange):
            exchange.wait(held)
            return response(b"late")
        origin = Origin(self, {"/half": half, "/poll": hold, "/upload": hold,
                               "/chat": websocket.echo})
        echo = EchoServer(self)
        encore = self.encore(timeouts={"drain": "8s", "client_body": "0s"},
                             forward={"connect_ports": [echo.port]},
                             limits={"client_body_rate_min": 0})
        silent = {kind: self.silent_client(encore, kind, origin, echo)
                  for kind in ("tunnel", "chat", "half", "poll", "upload")}
        lively = self.silent_client(encore, "tunnel", origin, echo)
        encore.signal(signal.SIGTERM)
        eventually(lambda: "draining" in encore.output(), "the drain has begun")
        waiting = dict(silent)
        while waiting:
            # This one lives as long as requests arrive.
            lively.send("ping")
            self.assertEqual(b"ping", lively.read_exactly(4))
            for kind, client in list(waiting.items()):
                if select.select([client.sock], [], [], 0.01)[0]:
                    self.assertTrue(client.at_end(), f"{kind} ends")
                    del waiting[kind]
        lively.send("still")
        self.assertEqual(b"still", lively.read_exactly(5))
        self.assertIsNone(encore.process.poll())
        lively.close()
        self.assertEqual(0, encore.wait_for_exit())
        drained = [r for r in encore.access_records(6) if r["outcome"] == "drained"]
        self.assertEqual(len(silent), len(drained))


if __name__ == "__main__":
    unittest.main()
