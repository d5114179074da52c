"""Slow requests of one address, far more than a server has connections, and five of another: those
are answered immediately. With few connections; SHARE_SOAK_CLIENTS (./dev soak --share) is their
number, with the limits that encore has by default if descriptors abound."""

import asyncio
import os
import resource
import socket
import threading
import time
import unittest

from client import Client
from harness import Case, eventually, free_port

CLIENTS = int(os.environ.get("SHARE_SOAK_CLIENTS", 0))
FEW = 60  # if no number is given, at a server with half as many connections


class HoldingOrigin:
    """Holds what is asked for below /slow until the end, and answers all else. One thread."""

    def __init__(self, case):
        self.held = 0
        self.loop = asyncio.new_event_loop()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()
        case.addCleanup(lambda: self.loop.call_soon_threadsafe(self.loop.stop))

    def run(self):
        self.loop.run_until_complete(asyncio.start_server(self.serve, sock=self.listener))
        self.loop.run_forever()

    async def serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if head.startswith(b"GET /slow"):
                    self.held += 1
                    await reader.read()
                    return
                writer.write(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n"
                             b"Content-Length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class Share(Case):
    def test_a_client_with_thousands_of_slow_requests_delays_itself_alone(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        count = min(CLIENTS or FEW, (hard - 500) * 2 // 3)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        origin = HoldingOrigin(self)
        upstream = {} if CLIENTS else {"connections_per_server": FEW // 2}
        # A machine with few descriptors allows one address fewer than are wanted here.
        limits = {"connections_per_client": "100%", "transfers_per_client": 8192} if CLIENTS else {}
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [f"http://127.0.0.1:{origin.port}"]}],
            upstream=upstream, limits=limits, timeouts={"origin_response": "10m", "origin_connect": "10m"})
        slow = []
        self.addCleanup(lambda: [sock.close() for sock in slow])
        for number in range(count):
            sock = socket.create_connection(("127.0.0.1", encore.port))
            sock.sendall(f"GET /slow{number} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
            slow.append(sock)
        # Half of the server's connections, and no more than that.
        half = 4096 if CLIENTS > 5000 else FEW // 4 if not CLIENTS else 1
        eventually(lambda: origin.held >= half - encore.stats()["workers"], "its share has come")
        held = origin.held
        for number in range(5):
            begun = time.monotonic()
            with Client(encore.port, source="127.0.0.2") as client:
                client.send(f"GET /other{number} HTTP/1.1\r\nHost: h\r\n\r\n")
                answer = client.read_response()
            self.assertEqual((200, b"ok"), (answer.status, answer.body))
            if CLIENTS:
                print(f"answered in {time.monotonic() - begun:.3f} s beside {held} of {count}")
        # Nothing of the first client had to end for it.
        self.assertGreaterEqual(origin.held, held)


if __name__ == "__main__":
    unittest.main()
