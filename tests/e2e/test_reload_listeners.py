"""A reload that adds, removes and changes listeners, under load and with faults."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import threading
import unittest

import websocket
from client import Client, NoResponse, field, get
from harness import Case, SLOWDOWN, clean_environment, eventually, free_port, listening
from origin import Origin, fresh, response


def bound_to_loopback(port):
    """Whether a socket listens on 127.0.0.1 alone at `port`."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        return any(line.split()[1:4:2] == [f"0100007F:{port:04X}", "0A"] for line in table)


class Reload(Case):
    def start_all(self, listen, **sections):
        self.origin = Origin(self, default=fresh(b"page"))
        self.proxy = self.encore(listen=listen, origin=[{"servers": [self.origin.url("")]}],
                                 **sections)

    def forward(self, port=None):
        return {"address": f"127.0.0.1:{port or free_port()}", "mode": "forward"}

    @staticmethod
    def port_of(listen):
        return int(listen["address"].rpartition(":")[2])

    def reload(self, listen=None, refused=False):
        if listen is not None:
            self.proxy.sections["listen"] = listen
        self.proxy.write_config()
        name = "encore_reload_failures_total" if refused else "encore_reloads_total"
        before = self.proxy.metrics()[name]
        self.proxy.signal(signal.SIGHUP)
        eventually(lambda: self.proxy.metrics()[name] == before + 1,
                   "the reload is " + ("refused" if refused else "done"))

    def test_a_listener_is_added_and_taken_away(self):
        first, second = self.forward(), self.forward()
        self.start_all([first])
        url = self.origin.url("/page")
        with Client(self.port_of(first)) as kept:
            self.assertEqual(b"page", kept.ask(url).body)
            self.reload([first, second])
            self.assertEqual(b"page", kept.ask(url).body)
            with Client(self.port_of(second)) as added:
                self.assertEqual(b"page", added.ask(url).body)
                self.reload([first])
                self.assertTrue(added.at_end())
            eventually(lambda: not listening(self.port_of(second)), "the workers have closed it")
            self.assertEqual(b"page", kept.ask(url).body)
        self.assertIn(f"no longer listening on {second['address']}", self.proxy.output())

    def test_a_request_under_way_on_a_listener_that_goes_is_answered(self):
        first, second = self.forward(), self.forward()
        self.start_all([first, second])
        release = threading.Event()
        self.origin.routes["/slow"] = lambda e: (e.wait(release), response(b"slow"))[1]
        self.origin.routes["/raw"] = websocket.RawSwitch(lambda s: s.sendall(s.recv(10)))
        with Client(self.port_of(second)) as client, Client(self.port_of(second)) as tunnel:
            tunnel.request(self.origin.url("/raw"),
                           fields=[("Connection", "upgrade"), ("Upgrade", "raw/1")])
            self.assertEqual(101, tunnel.read_head().status)
            client.request(self.origin.url("/slow"))
            eventually(lambda: self.origin.count("/slow") == 1, "it is asked")
            self.reload([first])
            release.set()
            answer = client.read_response()
            self.assertEqual((200, b"slow"), (answer.status, answer.body))
            self.assertTrue(client.at_end())
            tunnel.send(b"still here")
            self.assertEqual(b"still here", tunnel.read_exactly(10))

    def test_a_listener_changes_its_mode_under_its_clients(self):
        listen = self.forward()
        self.start_all([listen, self.forward()])
        with Client(self.port_of(listen)) as client:
            self.assertEqual(200, client.ask(self.origin.url("/page")).status)
            self.reload([{**listen, "mode": "reverse"}, self.proxy.sections["listen"][1]])
            client.send("GET /other HTTP/1.1\r\nHost: site.example\r\n\r\n")
            self.assertEqual(b"page", client.read_response().body)
            self.assertEqual("site.example", dict(self.origin.last("/other").fields)["host"])

    def test_the_order_means_nothing(self):
        first, second = self.forward(), {**self.forward(), "mode": "reverse"}
        self.start_all([first, second])
        with Client(self.port_of(first)) as one, Client(self.port_of(second)) as two:
            for _ in range(3):
                self.reload(self.proxy.sections["listen"][::-1])
                self.assertEqual(200, one.ask(self.origin.url("/a")).status)
                two.send("GET /b HTTP/1.1\r\nHost: h\r\n\r\n")
                self.assertEqual(200, two.read_response().status)

    def test_from_one_address_to_all_and_back(self):
        listen = self.forward()
        port = self.port_of(listen)
        self.start_all([listen, self.forward()])
        rest = self.proxy.sections["listen"][1:]
        # A client that came to the one address is a client of all: also without a request yet, and
        # if it came while the workers still had the old socket.
        with Client(port) as kept, Client(port) as silent:
            self.assertEqual(b"page", kept.ask(self.origin.url("/page")).body)
            self.reload([{**listen, "address": f"*:{port}"}, *rest])
            self.assertEqual(b"page", kept.ask(self.origin.url("/page")).body)
            self.assertEqual(b"page", silent.ask(self.origin.url("/page")).body)
            # A connection that the system gives to a socket during its close is reset: the old one
            # is gone first.
            eventually(lambda: not bound_to_loopback(port), "the workers have closed it")
            self.assertEqual(b"page", get(port, self.origin.url("/page")).body)
            # They are its clients through the next reload as well, wherever it stands.
            self.reload([*rest, {**listen, "address": f"*:{port}", "via": False}])
            answer = kept.ask(self.origin.url("/page"))
            self.assertEqual((b"page", None), (answer.body, field(answer, "Via")))
            self.reload([listen, *rest])
            self.assertTrue(kept.at_end())
        self.assertEqual(b"page", get(port, self.origin.url("/page")).body)

    def test_what_goes_may_come_again_at_once(self):
        first, second = self.forward(), self.forward()
        self.start_all([first, second], workers={"count": 4})
        # One order behind the other: the workers have not closed what the one before took away.
        for _ in range(30):
            self.reload([first])
            self.reload([first, second])
        self.assertEqual(0, self.proxy.stats()["reload_failures"])

        def is_served():
            # An old socket that is about to be closed may still be given a connection.
            with contextlib.suppress(OSError, NoResponse):
                return get(self.port_of(second), self.origin.url("/page")).body == b"page"
            return False
        eventually(is_served, "it is served")

    def test_what_cannot_be_had_is_refused_and_nothing_changes(self):
        first = self.forward()
        self.start_all([first])
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        busy = {"address": f"127.0.0.1:{taken.getsockname()[1]}", "mode": "forward"}
        fine = self.forward()
        before = len(os.listdir(f"/proc/{self.proxy.process.pid}/fd"))
        for wrong in ([fine, busy], [busy], [first, fine, busy],
                      [first, fine, {"address": "192.0.2.1:80", "mode": "forward"}],
                      [first, fine, {"address": f"unix:{self.directory}/none/x.sock",
                                     "mode": "forward"}]):
            self.reload(wrong, refused=True)
            self.assertEqual(b"page", get(self.port_of(first), self.origin.url("/page")).body)
            self.assertFalse(listening(self.port_of(fine)))
        eventually(lambda: len(os.listdir(f"/proc/{self.proxy.process.pid}/fd")) <= before + 4,
                   "no descriptors are left behind")
        self.assertIn("Address already in use", self.proxy.output())
        # The same by a fault that is found behind the listeners.
        self.proxy.sections["http"] = {"error_pages": str(self.directory / "none")}
        self.reload([first, fine], refused=True)
        self.assertFalse(listening(self.port_of(fine)))
        self.proxy.sections["http"] = {}
        self.reload([first, fine])
        self.assertEqual(b"page", get(self.port_of(fine), self.origin.url("/page")).body)

    def test_the_own_listeners_are_no_destinations_whenever_they_came(self):
        first, second = self.forward(), self.forward()
        self.start_all([first])
        self.reload([first, second])
        answer = get(self.port_of(first), f"http://127.0.0.1:{self.port_of(second)}/x")
        self.assertEqual(403, answer.status)
        self.assertIn("own-listener", field(answer, "Cache-Status"))

    def test_unix_sockets_come_and_go(self):
        first = self.forward()
        self.start_all([first])
        path = self.directory / "x.sock"
        for _ in range(3):
            self.reload([first, {"address": f"unix:{path}", "mode": "reverse"}])
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                self.assertIn(b" 200 ", client.recv(100))
            self.reload([first])
            self.assertFalse(path.exists())

    def test_a_hundred_reloads_under_load_lose_no_request(self):
        stays = [self.forward(), {**self.forward(), "mode": "reverse"}]
        self.start_all(stays, admission={"policy": "always"}, workers={"count": 2})
        seed = random.SystemRandom().randrange(1 << 32)
        chance = random.Random(seed)
        stop, faults, done = threading.Event(), [], [0] * 6

        def one(lane):
            number = 0
            try:
                while not stop.is_set():
                    reverse = lane % 2
                    with Client(self.port_of(stays[reverse])) as client:
                        for _ in range(1 + lane * 5):
                            number += 1
                            path = f"/{lane}/{number % 50}"
                            if reverse:
                                client.send(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
                                answer = client.read_response()
                            else:
                                answer = client.ask(self.origin.url(path))
                            assert (answer.status, answer.body) == (200, b"page"), answer
                            done[lane] += 1
            except Exception as error:  # noqa: BLE001
                faults.append((lane, number, repr(error)[:300]))
        threads = [websocket.spawn(one, lane) for lane in range(6)]
        others = []
        for turn in range(100 // SLOWDOWN):
            what = chance.random()
            if what < 0.5 or not others:
                others.append({**self.forward(), "mode": chance.choice(("forward", "reverse"))})
            elif what < 0.8:
                others.pop(chance.randrange(len(others)))
            else:
                chosen = chance.randrange(len(others))
                others[chosen] = {**others[chosen], "via": chance.choice((True, False)),
                                  "mode": chance.choice(("forward", "reverse"))}
            if len(others) > 6:
                others.pop(0)
            everything = stays + others
            chance.shuffle(everything)
            self.reload(everything)
            if faults:
                break
        stop.set()
        for thread in threads:
            thread.join(60)
        self.assertEqual([], faults, f"seed {seed}")
        self.assertTrue(all(done), done)
        for listen in others:
            self.assertTrue(listening(self.port_of(listen)))


class Check(Case):
    def check(self, encore):
        encore.write_config()
        return subprocess.run([encore.program, "--config", encore.config_path, "--check-config"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, text=True,
                              env=clean_environment(), check=False)

    def test_an_address_of_another_program_is_a_fault_and_one_of_encore_a_note(self):
        encore = self.encore()
        again = self.check(encore)
        self.assertEqual(0, again.returncode, again.stderr)
        self.assertIn("in use by a running encore", again.stdout)
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        other = self.encore(start=False, listen=[
            {"address": f"127.0.0.1:{free_port()}", "mode": "forward"},
            {"address": f"127.0.0.1:{taken.getsockname()[1]}", "mode": "forward"}])
        checked = self.check(other)
        self.assertEqual(1, checked.returncode)
        self.assertRegex(checked.stderr, r"encore-\d+\.toml:\d+:\d+: listen\.1\.address: .*in use")


if __name__ == "__main__":
    unittest.main()
