"""The effect of a reload on connections that it no longer allows: users who were removed, addresses
and hosts that are denied now, in tunnels, upgraded and kept-alive connections, and long
responses."""

import base64
import hashlib
import signal
import socket
import threading
import unittest

import websocket
from client import Client
from harness import Case, eventually, free_port
from origin import Origin, fresh

TOKENS = {"ci": "f5ba8dc1f6a24bd09e1f", "bot": "0123456789abcdef0123"}
# Hashes of "secret", by htpasswd -B -C 4 with two salts.
HASHES = ("$2y$04$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm",
          "$6$abcdefgh$ltjgWl6579NluT/Vi1nwEvcil.G5Nbc4NiXZaNGStk8PSwGfQv72N2CKPPrVACtLtip/cZ/"
          "1GM/O6IND4WQhG.")


class Revocations(Case):
    def setUp(self):
        super().setUp()
        self.echo = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.echo.close)
        threading.Thread(target=self.serve, daemon=True).start()
        self.port = self.echo.getsockname()[1]
        self.users, self.tokens = self.directory / "users", self.directory / "tokens"
        self.write_logins(["ann", "bob"], ["ci", "bot"])

    def serve(self):
        while True:
            try:
                sock, _ = self.echo.accept()
            except OSError:
                return
            threading.Thread(target=self.pass_back, args=(sock,), daemon=True).start()

    @staticmethod
    def pass_back(sock):
        with sock:
            try:
                while data := sock.recv(65536):
                    sock.sendall(data)
            except OSError:
                pass

    def write_logins(self, users, tokens, password=HASHES[0]):
        self.users.write_text("".join(f"{name}:{password}\n" for name in users))
        self.tokens.write_text("".join(
            f"{name}:{hashlib.sha256(TOKENS[name].encode()).hexdigest()}\n" for name in tokens))
        for file in (self.users, self.tokens):
            file.chmod(0o600)

    def proxy(self, listen=None, **sections):
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "forward", **(listen or {})}],
            forward={"connect_ports": [self.port], "safe_ports": ["1-65535"]},
            timeouts={"drain": "1s"}, **sections)

    def reload(self, encore, **listen):
        before = encore.stats()["reloads"]
        encore.sections["listen"][0].update(listen)
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: encore.stats()["reloads"] == before + 1, "it is reloaded")

    def tunnel(self, encore, login="", source=None):
        client = Client(encore.port, source=source)
        self.addCleanup(client.close)
        said = f"Proxy-Authorization: {login}\r\n" if login else ""
        authority = f"127.0.0.1:{self.port}"
        client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{said}\r\n")
        self.assertEqual(200, client.read_response("CONNECT").status)
        self.check_open(client)
        return client

    def check_open(self, client):
        client.send(b"x")
        self.assertEqual(b"x", client.sock.recv(1))

    def check_ended(self, client):
        """However it ends: in order, or by a reset."""
        try:
            self.assertEqual(b"", client.sock.recv(1))
        except ConnectionError:
            pass

    def revoked(self, encore):
        return encore.metrics()["encore_client_connections_revoked_total"]

    def test_tunnels_of_logins_that_are_gone_end(self):
        encore = self.proxy({"users_file": str(self.users), "tokens_file": str(self.tokens)})
        logins = {name: "Basic " + base64.b64encode(f"{name}:secret".encode()).decode()
                  for name in ("ann", "bob")}
        logins |= {name: f"Bearer {token}" for name, token in TOKENS.items()}
        tunnels = {name: self.tunnel(encore, login) for name, login in logins.items()}
        self.write_logins(["bob"], ["bot"])
        self.reload(encore)
        for name in ("ann", "ci"):
            self.check_ended(tunnels[name])
        for name in ("bob", "bot"):
            self.check_open(tunnels[name])
        self.assertEqual(2, self.revoked(encore))
        # Another password is another login.
        self.write_logins(["bob"], ["bot"], HASHES[1])
        self.reload(encore)
        self.check_ended(tunnels["bob"])
        self.check_open(tunnels["bot"])
        self.assertEqual(3, self.revoked(encore))

    def test_idle_connections_of_logins_that_are_gone_end(self):
        origin = Origin(self, {"/": fresh(b"page")})
        encore = self.proxy({"users_file": str(self.users), "tokens_file": str(self.tokens)})
        clients = {}
        for name, login in (("ann", b"ann:secret"), ("bob", b"bob:secret")):
            client = clients[name] = Client(encore.port)
            self.addCleanup(client.close)
            client.send(f"GET {origin.url('/')} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                        f"Proxy-Authorization: Basic {base64.b64encode(login).decode()}\r\n\r\n")
            self.assertEqual(200, client.read_response().status)
        self.write_logins(["bob"], [])
        self.reload(encore)
        self.check_ended(clients["ann"])
        self.assertEqual(1, self.revoked(encore))
        clients["bob"].send(f"GET {origin.url('/')} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                            "Proxy-Authorization: Basic " +
                            base64.b64encode(b"bob:secret").decode() + "\r\n\r\n")
        self.assertEqual(200, clients["bob"].read_response().status)

    def test_a_tunnel_ends_although_its_listener_goes_meanwhile(self):
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "forward",
                     "users_file": str(self.users)},
                    {"address": f"127.0.0.1:{free_port()}", "mode": "forward"}],
            forward={"connect_ports": [self.port], "safe_ports": ["1-65535"]},
            timeouts={"drain": "2s"})
        login = "Basic " + base64.b64encode(b"ann:secret").decode()
        tunnel = self.tunnel(encore, login)
        self.write_logins(["bob"], [])
        self.reload(encore)
        self.assertEqual(1, self.revoked(encore))
        del encore.sections["listen"][0]
        self.reload(encore)
        self.check_ended(tunnel)

    def test_a_large_hit_that_is_denied_ends(self):
        body = b"z" * 16_000_000
        origin = Origin(self, {"/large": fresh(body)})
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [origin.url("")]}], admission={"policy": "always"},
            cache={"memory": "256MiB"}, timeouts={"drain": "1s"})
        with Client(encore.port) as client:
            client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(body, client.read_response().body)
        with Client(encore.port, receive_buffer=8192) as client:
            client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
            client.read_until(b"\r\n\r\n")
            self.reload(encore, deny_paths=["/large"])
            self.assertEqual(1, self.revoked(encore))
            eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "it was cut")

    def test_a_websocket_of_a_login_that_is_gone_ends(self):
        origin = Origin(self, {"/chat": websocket.echo})
        encore = self.proxy({"users_file": str(self.users)})
        sockets = {}
        for name in ("ann", "bob"):
            login = base64.b64encode(f"{name}:secret".encode()).decode()
            client = sockets[name] = Client(encore.port)
            self.addCleanup(client.close)
            client.request(origin.url("/chat"), fields=[
                *websocket.handshake_fields(), ("Proxy-Authorization", f"Basic {login}")])
            self.assertEqual(101, client.read_head().status)
        self.write_logins(["bob"], [])
        self.reload(encore)
        self.check_ended(sockets["ann"])
        sockets["bob"].send(websocket.frame(b"still", masked=True))
        self.assertEqual(b"still", websocket.read_frame(sockets["bob"].read_exactly)[1])
        self.assertEqual(1, self.revoked(encore))

    def test_who_never_logged_in_ends_where_that_is_asked_for_now(self):
        encore = self.proxy()
        tunnel = self.tunnel(encore)
        self.reload(encore, users_file=str(self.users))
        self.check_ended(tunnel)

    def test_tunnels_of_clients_and_to_hosts_that_are_denied_end(self):
        encore = self.proxy()
        one, other = self.tunnel(encore), self.tunnel(encore, source="127.0.0.2")
        self.reload(encore, deny_clients=["127.0.0.2"])
        self.check_ended(other)
        self.check_open(one)
        self.reload(encore, deny_hosts=["127.0.0.1"])
        self.check_ended(one)
        self.assertEqual(2, self.revoked(encore))

    def test_tunnels_to_what_forward_or_a_rule_denies_end(self):
        for section, value in (("forward", {"connect_ports": [443]}),
                               ("forward", {"connect_ports": [self.port],
                                            "private_destinations": "never"}),
                               ("forward", {"connect_ports": [self.port],
                                            "allow_clients": ["192.0.2.1"]}),
                               ("rule", [{"host": "127.0.0.1", "deny": 403}])):
            with self.subTest(section=section, value=value):
                encore = self.proxy()
                tunnel = self.tunnel(encore)
                encore.sections[section] = value
                self.reload(encore)
                self.check_ended(tunnel)
                encore.stop()

    def test_a_kept_alive_connection_of_a_denied_client_ends(self):
        origin = Origin(self, default=fresh(b"ok"))
        encore = self.proxy()
        with Client(encore.port, source="127.0.0.2") as client, Client(encore.port) as other:
            for each in (client, other):
                self.assertEqual(200, each.ask(origin.url("/a")).status)
            self.reload(encore, deny_clients=["127.0.0.2"])
            self.check_ended(client)
            self.assertEqual(200, other.ask(origin.url("/a")).status)

    def test_a_long_response_has_the_drain_time_and_a_short_one_comes_whole(self):
        go = threading.Event()

        def slow(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
            exchange.wait(go)
            exchange.send(b"cd")
        origin = Origin(self, {"/slow": slow})
        encore = self.proxy()
        for is_short in (True, False):
            go.clear()
            encore.sections["timeouts"]["drain"] = "1h" if is_short else "1s"
            self.reload(encore, deny_hosts=[])
            with Client(encore.port) as client:
                client.send(f"GET {origin.url('/slow')} HTTP/1.1\r\nHost: a\r\n\r\n")
                got = b""
                while not got.endswith(b"\r\n\r\nab"):
                    got += client.sock.recv(1)
                self.reload(encore, deny_hosts=["127.0.0.1"])
                if is_short:
                    go.set()
                    while not got.endswith(b"cd"):
                        got += client.sock.recv(1)
                self.check_ended(client)


if __name__ == "__main__":
    unittest.main()
