"""Streams of HTTP/2 have each their own login, their own end and their own pace."""

import base64
import hashlib
import os
import random
import signal
import socket
import threading
import unittest

import http2
from harness import eventually
from http2 import Http2Client
from origin import fresh, response
from test_http2 import Http2Case

TOKENS = {"ann": "f5ba8dc1f6a24bd09e1f", "bob": "0123456789abcdef0123"}
# The password is "secret", by htpasswd -B -C 11: some 100 ms to check.
SLOW = "$2y$11$o7a32LtrLk7cLYVa2tWvvuqqIIk67lu5nw9er8lV8KIiTOm5LqwMm"
QUICK = "$2y$04$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm"
LARGE = random.Random(4).randbytes(3_000_000)


def basic(name, password):
    said = base64.b64encode(f"{name}:{password}".encode()).decode()
    return [("authorization", f"Basic {said}")]


def bearer(name):
    return [("authorization", f"Bearer {TOKENS[name]}")]


class Waiting:
    """Answers of an origin that come when they are let go."""

    def __init__(self, case, body=b"late"):
        self.go = threading.Event()
        case.addCleanup(self.go.set)
        self.body = body

    def __call__(self, exchange):
        exchange.wait(self.go)
        return response(self.body)


class Logins(Http2Case):
    def serve_users(self, users, **sections):
        self.users, self.tokens = self.directory / "users", self.directory / "tokens"
        self.users.write_text("".join(f"{name}:{secret}\n" for name, secret in users.items()))
        self.write_tokens("ann", "bob")
        self.users.chmod(0o600)
        return self.serve({"/x": response(b"x")}, {"users_file": str(self.users),
                                                   "tokens_file": str(self.tokens)}, **sections)

    def write_tokens(self, *names):
        self.tokens.write_text("".join(
            f"{name}:{hashlib.sha256(TOKENS[name].encode()).hexdigest()}\n" for name in names))
        self.tokens.chmod(0o600)

    def test_streams_log_in_each_by_itself(self):
        self.serve_users({"ann": QUICK, "bob": SLOW})
        with self.client() as client:
            wanted = {}
            for _ in range(5):
                for login, status in ((basic("ann", "secret"), 200), (basic("bob", "secret"), 200),
                                      (basic("ann", "wrong"), 401), (bearer("bob"), 200),
                                      ([("authorization", "Bearer wrong")], 401), ([], 401)):
                    wanted[client.request("/x", login)] = status
            for stream, status in wanted.items():
                self.assertEqual(status, client.response(stream).status)
            self.assertEqual([], client.goaways)
        for request in self.origin.requests:
            self.assertNotIn("authorization", {name.lower() for name, _ in request.fields})
        users = {(each.get("user"), each["status"]) for each in self.proxy.access_records(30)}
        self.assertTrue({("ann", 200), ("bob", 200)} <= users, users)
        eventually(lambda: self.proxy.metrics()["encore_http2_streams"] == 0, "all have ended")

    def test_who_needs_no_check_does_not_wait_behind_one(self):
        # 400 ms to check. On a busy machine a check may be over before anything else happens.
        self.serve_users({"bob": SLOW.replace("$11$", "$13$")})
        with self.client() as client:
            def is_overtaken(attempt):
                waits = client.request("/x", basic("bob", f"wrong{attempt}"))
                self.assertEqual(200, client.ask("/x", bearer("ann")).status)
                overtaken = not client.streams[waits].over
                self.assertEqual(401, client.response(waits).status)
                return overtaken
            self.assertTrue(any(map(is_overtaken, range(20))))

    def test_content_that_comes_during_the_check_is_passed_on(self):
        self.serve_users({"bob": SLOW})
        self.origin.routes["/echo"] = lambda e: response(e.request.body)
        with self.client() as client:
            client.read_until(lambda: client.acknowledged)
            stream = client.request("/echo", basic("bob", "secret"), method="POST", end=False)
            client.data(stream, LARGE)
            answer = client.response(stream)
            self.assertEqual((200, True), (answer.status, LARGE == answer.body))

    def test_streams_that_are_reset_while_they_wait_are_forgotten(self):
        self.serve_users({"bob": SLOW})
        with self.client() as client:
            streams = [client.request("/x", basic("bob", f"wrong{i}")) for i in range(20)]
            for stream in streams:
                client.reset(stream)
            self.assertEqual(200, client.ask("/x", bearer("ann")).status)
        with self.client() as client:
            client.request("/x", basic("bob", "wrong"))  # and the connection goes
        with self.client() as client:
            self.assertEqual(200, client.ask("/x", bearer("ann")).status)

    def test_content_that_cannot_come_any_more_is_not_waited_for(self):
        self.serve_users({"bob": SLOW.replace("$11$", "$13$")})
        self.origin.routes["/echo"] = lambda e: response(e.request.body)
        with self.client() as client:
            client.read_until(lambda: client.acknowledged)
            stream = client.request("/echo", basic("bob", "secret"), method="POST", end=False)
            client.sock.shutdown(socket.SHUT_WR)
            self.assertEqual(http2.CANCEL, client.response(stream).reset)
            self.assertTrue(client.at_end())
        self.assertEqual([], self.origin.requests)
        eventually(lambda: self.proxy.metrics()["encore_http2_streams"] == 0, "it has ended")

    def test_a_login_that_is_revoked_ends_its_streams_alone(self):
        self.serve_users({"x": QUICK}, timeouts={"drain": "1s"})
        hers, his = Waiting(self), Waiting(self)
        self.origin.routes.update({"/hers": hers, "/his": his})
        with self.client() as client:
            ann = client.request("/hers", bearer("ann"))
            bob = client.request("/his", bearer("bob"))
            eventually(lambda: self.origin.count("/hers") == self.origin.count("/his") == 1,
                       "both are asked for")
            self.write_tokens("ann")
            self.reload()
            self.assertEqual(http2.CANCEL, client.response(bob).reset)
            self.assertEqual(401, client.ask("/x", bearer("bob")).status)
            self.assertEqual(200, client.ask("/x", bearer("ann")).status)
            hers.go.set()
            self.assertEqual(b"late", client.response(ann).body)
            self.assertEqual([], client.goaways)
        ended = [each for each in self.proxy.access_records(4) if each["outcome"] == "denied"
                 and each.get("detail") == "revoked"]
        self.assertEqual(["bob"], [each["user"] for each in ended])
        self.assertEqual(1, self.proxy.metrics()["encore_client_connections_revoked_total"])

    def reload(self):
        before = self.proxy.stats()["reloads"]
        self.proxy.write_config()
        self.proxy.signal(signal.SIGHUP)
        eventually(lambda: self.proxy.stats()["reloads"] == before + 1, "it is reloaded")


class Reloads(Http2Case):
    def reload(self, **listen):
        before = self.proxy.stats()["reloads"]
        self.proxy.sections["listen"][0].update(listen)
        self.proxy.write_config()
        self.proxy.signal(signal.SIGHUP)
        eventually(lambda: self.proxy.stats()["reloads"] == before + 1, "it is reloaded")

    def test_a_client_that_is_not_allowed_any_more_ends(self):
        self.serve({"/x": response(b"x")}, timeouts={"drain": "1s"})
        with self.client() as client:
            self.assertEqual(b"x", client.ask("/x").body)
            self.reload(deny_clients=["127.0.0.1"])
            self.assertTrue(client.at_end())
            self.assertEqual(http2.NO_ERROR, client.goaways[-1][1])

    def test_http_2_is_switched_for_new_connections(self):
        self.serve({"/x": response(b"x")})
        with self.client() as old:
            self.assertEqual(b"x", old.ask("/x").body)
            self.reload(http2=False)
            self.assertEqual(b"x", old.ask("/x").body)
            with self.client() as client:
                client.sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
                self.assertTrue(client.sock.recv(100).startswith(b"HTTP/1.1 "))
            self.reload(http2=True)
            with self.client() as client:
                self.assertEqual(b"x", client.ask("/x").body)
            self.assertEqual(b"x", old.ask("/x").body)

    def test_connections_outlive_many_reloads(self):
        self.serve({"/x": fresh(b"x")})
        with self.client() as client:
            for _ in range(5):
                self.assertEqual(b"x", client.ask("/x").body)
                self.reload()
            self.assertEqual([], client.goaways)


class Ends(Http2Case):
    def test_a_client_that_ends_its_side_gets_its_answers(self):
        late = Waiting(self)
        self.serve({"/late": late, "/large": fresh(LARGE)})
        with self.client(settings=[(http2.INITIAL_WINDOW_SIZE, 1 << 24)]) as client:
            client.open_window(0, 1 << 24)
            client.read_until(lambda: client.acknowledged)
            large, slow = client.request("/large"), client.request("/late")
            post = client.request("/large", method="POST", end=False)
            eventually(lambda: self.origin.count("/late"), "it is asked for")
            client.window = None
            client.sock.shutdown(1)
            self.assertEqual(LARGE, client.response(large).body)
            self.assertIsNotNone(client.response(post).reset)
            self.assertFalse(client.streams[slow].over)
            late.go.set()
            self.assertEqual(b"late", client.response(slow).body)
            self.assertTrue(client.at_end())
        records = {each["path"] if "path" in each else each["url"]: each
                   for each in self.proxy.access_records(3)}
        self.assertEqual(3, len(self.proxy.access_records(3)), records)

    def test_one_that_has_gone_ends_its_streams(self):
        self.serve({"/late": Waiting(self)})
        client = self.client()
        client.request("/late")
        eventually(lambda: self.origin.count("/late"), "it is asked for")
        client.close()
        record = self.proxy.access_records(1)[0]
        self.assertEqual("client-aborted", record["outcome"])
        eventually(lambda: self.proxy.metrics()["encore_http2_connections"] == 0, "it has ended")

    def test_what_did_not_go_out_is_not_recorded_as_delivered(self):
        self.serve({"/large": fresh(LARGE)}, admission={"policy": "always"},
                   cache={"memory": "64MiB"})
        for kind, before in ("miss", 0), ("hit", 2):
            with self.client(settings=[(http2.INITIAL_WINDOW_SIZE, 0x7fffffff)],
                             receive_buffer=4096) as client:
                client.open_window(0, 0x7fffffff - 65535)
                stream = client.request("/large")
                client.read_until(lambda: len(client.streams[stream].body) > 5000)
                client.go()
            record = self.proxy.access_records(before + 1)[before]
            self.assertEqual(("client-aborted", "reset"),
                             (record["outcome"], record.get("detail")), (kind, record))
            self.assertTrue(5000 < record["body_bytes"] < 1_000_000, (kind, record))
            with self.client() as client:
                self.assertEqual(LARGE, client.ask("/large").body)
            record = self.proxy.access_records(before + 2)[before + 1]
            self.assertEqual(len(LARGE), record["body_bytes"])
            self.assertNotEqual("client-aborted", record["outcome"])

    def test_a_streams_record_names_the_flood_that_ended_it(self):
        self.serve({"/late": Waiting(self)})
        with self.client() as client:
            client.request("/late")
            eventually(lambda: self.origin.count("/late"), "it is asked for")
            try:
                for _ in range(1000):
                    client.frame(http2.PING, 0, 0, bytes(8))
            except OSError:
                pass
            self.assertTrue(client.at_end())
        self.assertEqual("ping", self.proxy.access_records(1)[0]["detail"])


class Slow(Http2Case):
    def test_a_slow_stream_is_cut_and_others_go_on(self):
        self.serve({"/large": fresh(LARGE), "/small": fresh(b"small")},
                   timeouts={"client_write": "2s"}, limits={"client_write_rate_min": "1MiB"})
        with self.client(settings=[(http2.INITIAL_WINDOW_SIZE, 1000)], window=None) as client:
            client.open_window(0, 1 << 24)
            slow = client.request("/large")
            while not client.streams[slow].over:
                # A little, again and again, so that it does not stall.
                client.open_window(slow, 50)
                self.assertEqual(b"small", client.ask("/small").body)
            self.assertEqual(http2.CANCEL, client.streams[slow].reset)
            self.assertEqual(b"small", client.ask("/small").body)
            self.assertEqual([], client.goaways)
        self.assertEqual(1, self.proxy.metrics()["encore_slow_readers_cut_total"])
        eventually(lambda: any(each["outcome"] == "slow-reader"
                               for each in self.proxy.access_records(0)), "its record is logged")

    def test_memory_that_a_connections_streams_hold_is_its_clients(self):
        self.serve({f"/{i}": response(os.urandom(2_000_000)) for i in range(8)},
                   limits={"transfer_buffer": "1MiB", "transfer_memory_per_client": "2MiB"})
        with self.client(window=None) as client:
            for i in range(8):
                client.request(f"/{i}")
            eventually(lambda: self.origin.count() == 8, "all are asked for")
            with self.client() as other:
                self.assertEqual(2_000_000, len(other.ask("/1").body))
            eventually(lambda: self.proxy.metrics()["encore_share_waits_total"] > 0,
                       "an origin waits for its client to take what it holds")


if __name__ == "__main__":
    unittest.main()
