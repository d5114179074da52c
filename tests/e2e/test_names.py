"""Names of origins, asked of a name server of the test: what it was asked is the oracle."""

import os
import resource
import select
import signal
import unittest

from client import Client, field, get
from harness import Case, eventually, free_port
from name_server import NameServer
from origin import Origin, fresh

DEAD = 700


def has_connections(port):
    """Whether a process of this machine holds a connection that came to this port."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    listens, no_process = "0A", "0"
    return any(int(local.rpartition(":")[2], 16) == port and state != listens and
               inode != no_process
               for _, local, _, state, _, _, _, _, _, inode, *_ in rows)


class Names(Case):
    def setUp(self):
        super().setUp()
        self.names = NameServer(self)
        self.origin = Origin(self, default=fresh(b"found"))

    def proxy(self, **upstream):
        # One worker: each has its own memory of names.
        return self.encore(upstream={"nameservers": [self.names.address], **upstream},
                           workers={"count": 1}, timeouts={"dns": "60s", "drain": "1s"})

    def url(self, name, path="/"):
        return f"http://{name}:{self.origin.port}{path}"

    def send(self, encore, name, path="/"):
        client = Client(encore.port)
        self.addCleanup(client.close)
        client.request(self.url(name, path))
        return client

    @staticmethod
    def counted(encore, counter):
        return encore.metrics()[f"encore_dns_{counter}"]

    def test_an_answer_that_is_cut_short_is_asked_for_over_tcp(self):
        encore = self.proxy()
        self.names.answers["long.test"] = [["127.0.0.1"]]
        self.names.truncated.add("long.test")
        self.assertEqual(b"found", get(encore.port, self.url("long.test")).body)
        self.assertEqual(["long.test"], self.names.over_tcp)

    def test_a_name_is_asked_for_once_whoever_waits_for_it(self):
        encore = self.proxy()
        self.names.answers["one.test"] = [["127.0.0.1"]]
        self.names.ttl = 600
        self.names.go_on.clear()
        clients = [self.send(encore, "one.test", f"/{i}") for i in range(20)]
        eventually(lambda: self.counted(encore, "joined_total") == 19, "19 wait with the first")
        # A client that leaves takes nothing from the others.
        clients.pop(0).reset()
        eventually(lambda: encore.metrics()["encore_client_connections"] == 19, "one is gone")
        self.names.go_on.set()
        for client in clients:
            self.assertEqual(b"found", client.read_response().body)
        # And it is remembered; another port needs another connection.
        later = Origin(self, default=fresh(b"later"))
        self.assertEqual(b"later", get(encore.port, f"http://one.test:{later.port}/").body)
        self.assertEqual(["one.test"], self.names.asked)
        self.assertEqual(2, self.counted(encore, "questions_total"))
        self.assertEqual(1, self.counted(encore, "cache_hits_total"))

    def test_a_name_that_does_not_exist_is_not_asked_for_again_at_once(self):
        encore = self.proxy()
        for path in "/a", "/b":
            answer = get(encore.port, self.url("absent.test", path))
            self.assertEqual(502, answer.status)
            self.assertIn("detail=dns-not-found", field(answer, "Cache-Status"))
        self.assertEqual(["absent.test"], self.names.asked)

    def test_a_dead_zone_does_not_keep_other_names_waiting(self):
        encore = self.proxy()
        self.names.silent.add("dead.test")
        self.names.answers["alive.test"] = [["127.0.0.1"]]
        clients = [self.send(encore, f"n{i}.dead.test") for i in range(DEAD)]
        eventually(lambda: encore.metrics()["encore_client_received_bytes_total"] >= 60 * DEAD,
                   "all requests are there")
        self.assertEqual(b"found", get(encore.port, self.url("alive.test")).body)
        answered = select.select([client.sock for client in clients], [], [], 0)[0]
        self.assertEqual(0, len(answered), "the answer came before those of the dead zone")

    def test_a_client_has_a_limited_number_of_lookups_under_way(self):
        encore = self.proxy(dns_lookups_per_client=3)
        self.names.silent.add("dead.test")
        self.names.answers["one.test"] = [["127.0.0.1"]]
        self.names.ttl = 600
        self.assertEqual(200, get(encore.port, self.url("one.test")).status)
        for i in range(3):
            self.send(encore, f"n{i}.dead.test")
        eventually(lambda: self.counted(encore, "lookups") == 3, "three are under way")
        answer = get(encore.port, self.url("two.test"))
        self.assertEqual(503, answer.status)
        self.assertIn("detail=dns-limit", field(answer, "Cache-Status"))
        with Client(encore.port) as client:
            client.send("CONNECT two.test:443 HTTP/1.1\r\nHost: two.test:443\r\n\r\n")
            self.assertEqual(503, client.read_response("CONNECT").status)
        self.assertEqual(2, self.counted(encore, "limited_total"))
        # A known name needs no lookup.
        self.assertEqual(200, get(encore.port, self.url("one.test", "/more")).status)
        self.assertNotIn("two.test", self.names.asked)

    def test_names_of_configured_origins_have_no_client_and_no_such_limit(self):
        port = self.origin.port
        for i in range(4):
            self.names.answers[f"o{i}.test"] = [["127.0.0.1"]]
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"host": f"o{i}.test", "servers": [f"http://o{i}.test:{port}"]}
                    for i in range(4)],
            upstream={"nameservers": [self.names.address], "dns_lookups_per_client": 1},
            workers={"count": 1})
        self.names.go_on.clear()
        clients = []
        for i in range(4):
            client = Client(encore.port)
            self.addCleanup(client.close)
            client.send(f"GET / HTTP/1.1\r\nHost: o{i}.test\r\n\r\n")
            clients.append(client)
        eventually(lambda: self.counted(encore, "lookups") == 4, "four are under way")
        self.names.go_on.set()
        self.assertEqual([200] * 4, [client.read_response().status for client in clients])

    def test_idle_connections_give_way_to_a_question(self):
        encore = self.proxy()
        self.names.answers["early.test"] = self.names.answers["late.test"] = [["127.0.0.1"]]
        with Client(encore.port) as client:
            client.request(self.url("early.test"))
            self.assertEqual(b"found", client.read_response().body)
            eventually(lambda: self.counted(encore, "lookups") == 0, "nothing is asked any more")
            # The connection that told so has to be gone: its number would be free a moment later.
            eventually(lambda: not has_connections(encore.admin_port), "nobody asks for pages")
            # Numbers below the kept connection's, such as that of the question, are taken.
            descriptors = f"/proc/{encore.process.pid}/fd"
            while (count := len(os.listdir(descriptors))) <= max(map(int, os.listdir(descriptors))):
                self.addCleanup(Client(encore.port).close)
                eventually(lambda: len(os.listdir(descriptors)) > count, "it is there")
            # From here on no number above those in use is given.
            free = count
            soft, hard = resource.prlimit(encore.process.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(encore.process.pid, resource.RLIMIT_NOFILE, (free, hard))
            client.request(self.url("late.test"))
            self.assertEqual(b"found", client.read_response().body)
            resource.prlimit(encore.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
        self.assertEqual(["early.test", "late.test"], self.names.asked)
        self.assertEqual(1, encore.metrics()["encore_origin_connections"])

    def test_a_reload_turns_to_other_name_servers(self):
        encore = self.proxy()
        self.names.answers["moved.test"] = [["127.0.0.2"]]  # an address without a listener
        self.names.silent.add("dead.test")
        self.names.ttl = 600
        self.assertEqual(502, get(encore.port, self.url("moved.test")).status)
        waiting = self.send(encore, "n.dead.test")
        eventually(lambda: "n.dead.test" in self.names.asked, "it was asked for")
        other = NameServer(self)
        other.answers["moved.test"] = other.answers["n.dead.test"] = [["127.0.0.1"]]
        encore.sections["upstream"]["nameservers"] = [other.address]
        encore.write_config()
        encore.signal(signal.SIGHUP)
        self.assertEqual(b"found", waiting.read_response().body)
        self.assertEqual(b"found", get(encore.port, self.url("moved.test")).body)
        self.assertEqual(["moved.test"], [n for n in self.names.asked if n == "moved.test"])


if __name__ == "__main__":
    unittest.main()
