"""Two nginx behind a reverse listener, and clients that ask without a pause while those are killed,
hung and restarted: what the tests of failing servers share."""

import http.client
import random
import signal
import threading

from harness import DEADLINE, SLOWDOWN, Case, eventually, free_port
from nginx import Nginx

# Each answers by its own name and with what it was asked; a probe of a health check apart.
ANSWER = """
  location = /health {{ access_log off; add_header Cache-Control no-store; return 200 well; }}
  location / {{ add_header Cache-Control max-age=60; add_header X-Server {name};
                return 200 "$uri$is_args$args\\n"; }}
"""


class Server(Nginx):
    """One process, so that a signal hits all of it."""

    def __init__(self, case, name, locations=None):
        self.name = name
        super().__init__(case, case.directory, extra=locations or ANSWER.format(name=name),
                         main="master_process off;")

    def start(self):
        super().start()
        self.case.addCleanup(self.go_on)

    def is_running(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def hang(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        if self.is_running():
            self.process.send_signal(signal.SIGCONT)


class Clients:
    """Threads that ask for one thing after the other, each on a connection that it keeps."""

    def __init__(self, case, port, count=8, seed=1):
        self.case, self.port = case, port
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.asked, self.failed, self.by_server = 0, [], {}
        self.threads = [threading.Thread(target=self.ask_on, args=(random.Random(seed + i), i))
                        for i in range(count)]
        for thread in self.threads:
            thread.start()
        case.addCleanup(self.stop)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(DEADLINE)

    def ask_on(self, rng, which):
        connection, number = None, 0
        while not self.over.is_set():
            number += 1
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                        timeout=30 * SLOWDOWN)
            # Most were never asked for; some are hits and answers that many wait for.
            path = f"/{which}/{number}" if rng.random() < 0.9 else f"/shared/{rng.randrange(50)}"
            method = "HEAD" if rng.random() < 0.1 else "GET"
            fault, server = None, None
            try:
                connection.request(method, path)
                answer = connection.getresponse()
                body = answer.read()
                if not path.startswith("/shared"):
                    server = answer.getheader("X-Server")
                if answer.status != 200 or method == "GET" and body != path.encode() + b"\n":
                    fault = f"{method} {path}: {answer.status} " \
                            f"{answer.getheader('Cache-Status')} {body[:80]}"
            except (OSError, http.client.HTTPException) as error:
                fault = f"{method} {path}: {error!r}"
            if fault:
                connection.close()
                connection = None
            with self.lock:
                self.asked += 1
                self.by_server[server] = self.by_server.get(server, 0) + 1
                if fault:
                    self.failed.append(fault)

    def served_by(self, server):
        """Returns how many requests it received that could not have been cache hits."""
        with self.lock:
            return self.by_server.get(server.name, 0)

    def wait_for(self, count):
        """Until so many more requests were answered."""
        goal = self.asked + count
        eventually(lambda: self.asked >= goal, f"{count} more requests")

    def wait_for_server(self, server, count):
        """Until this server has answered so many more."""
        goal = self.served_by(server) + count
        eventually(lambda: self.served_by(server) >= goal, f"{server.name} answers {count} more")


class ServersCase(Case):
    def setUp(self):
        super().setUp()
        self.start_servers()

    def start_servers(self):
        self.servers = [Server(self, "one"), Server(self, "two")]

    def reverse(self, origin=None, start=True, **sections):
        """A proxy before both. Limits are as short as a busy machine allows; the one server may go
        while a request comes from the other, which takes more than one retry."""
        settings = {"upstream": {"set_aside": "200ms", "set_aside_max": "1s", "first_byte": "1s",
                                 "retries": 3},
                    "timeouts": {"origin_connect": "1s"}}
        for name, section in sections.items():
            settings[name] = {**settings.get(name, {}), **section}
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [server.url("") for server in self.servers], **(origin or {})}],
            start=start, **settings)
