"""Upgrade after upgrade under load: kept-alive connections, one-shot ones, TLS, HTTP/2, uploads, slow
downloads, purges, workers 2 -> 1 -> 4, with a disk. No request fails. nginx (USR2, WINCH, QUIT) and
HAProxy (-sf) do the same for comparison. UPGRADE_SOAK (./dev soak --upgrades) is the number of upgrades,
UPGRADE_SOAK_DOWNLOAD the seconds that each download takes."""

import os
import pathlib
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest

from client import Client, field
from harness import Case, eventually, free_port, need_program, sanitized
from http2 import Http2Client
from origin import Origin, fresh, response
from tls import Authority, SecureClient, ask_on
from upgrading import Load, UpgradingEncore

UPGRADES = int(os.environ.get("UPGRADE_SOAK", 0))
FEW = 3
DOWNLOAD = float(os.environ.get("UPGRADE_SOAK_DOWNLOAD", 60 if UPGRADES else 2))
NAME = "www.example"
PAGE = b"a page\n" * 300
PIECES = 40
PIECE = b"p" * 5000


class Soak(Case):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self)
        self.pair = self.authority.pair(NAME)
        self.origin = Origin(self, {"/slow": self.slow, "/upload": self.upload},
                             default=fresh(PAGE))
        self.rounds = UPGRADES or FEW
        self.load = Load(self)

    def slow(self, exchange):
        """A download that takes its time, and is never stored."""
        head = (f"HTTP/1.1 200 OK\r\nContent-Length: {PIECES * len(PIECE)}\r\n"
                "Cache-Control: no-store\r\n\r\n")
        exchange.send(head.encode())
        for _ in range(PIECES):
            exchange.send(PIECE)
            self.load.over.wait(DOWNLOAD / PIECES)

    @staticmethod
    def upload(exchange):
        exchange.send(response(str(len(exchange.request.body)).encode(), Cache_Control="no-store"))

    @staticmethod
    def check(answer, body):
        if answer.status != 200 or answer.body != body:
            raise AssertionError(f"{answer.status}, {len(answer.body)} bytes")

    def begin_load(self, port, tls_port, http2=True):
        """The same load for each proxy; `port` speaks HTTP/1, `tls_port` TLS."""
        context = self.authority.trusting()
        h2_context = self.authority.trusting()
        h2_context.set_alpn_protocols(["h2"])
        numbers = iter(range(10**9))

        def kept(state):
            client = state.get("client")
            if client is None:
                client = state["client"] = Client(port)
            answer = ask_on(client, f"/page/{next(numbers) % 200}", NAME)
            self.check(answer, PAGE)
            if field(answer, "Connection") == "close":
                client.close()
                del state["client"]
            return 1

        def one_shot(_):
            with Client(port) as client:
                self.check(ask_on(client, f"/page/{next(numbers) % 200}", NAME,
                                  fields=[("Connection", "close")]), PAGE)
            return 1

        def secure(_):
            with SecureClient(tls_port, context, NAME) as client:
                for _ in range(2):
                    answer = ask_on(client, "/page/tls", NAME)
                    self.check(answer, PAGE)
                    if field(answer, "Connection") == "close":
                        break
            return 1

        def by_http2(state):
            client = state.get("client")
            if client is None:
                client = state["client"] = Http2Client(tls_port, h2_context)
            answer = client.ask("/page/h2")
            if answer.status != 200 or answer.body != PAGE:
                raise AssertionError(f"{answer.status} after {client.goaways}")
            if client.goaways:
                client.close()
                del state["client"]
            return 1

        def upload(_):
            content = b"u" * 200_000
            with Client(port) as client:
                client.send(f"POST /upload HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n"
                            f"Content-Length: {len(content)}\r\n\r\n")
                for at in range(0, len(content), 20_000):
                    client.send(content[at:at + 20_000])
                    self.load.over.wait(0.01)
                self.check(client.read_response("POST"), b"200000")
            return 1

        def download(_):
            with Client(port, timeout=10 * DOWNLOAD + 60) as client:
                answer = ask_on(client, "/slow", NAME, fields=[("Connection", "close")])
                self.check(answer, PIECE * PIECES)
            return 1
        self.load.add("kept", kept, 4)
        self.load.add("one-shot", one_shot, 4)
        self.load.add("tls", secure, 2)
        if http2:
            self.load.add("h2", by_http2, 2)
        self.load.add("upload", upload, 2)
        self.load.add("download", download, 2)

    def end_load(self, name, began):
        self.load.over.set()
        for thread in self.load.threads:
            thread.join(10 * DOWNLOAD + 60)
        counts = ", ".join(f"{kind} {count}" for kind, count in self.load.counts.items())
        print(f"\n{name}: {self.rounds} replacements in {time.monotonic() - began:.0f} s, "
              f"{sum(self.load.counts.values())} requests ({counts}), "
              f"{len(self.load.failures)} failed", flush=True)
        for failure in self.load.failures[:5]:
            print(f"  {failure}", flush=True)

    def test_encore(self):
        port, tls_port = free_port(), free_port()
        path = self.directory / "disk"
        proxy = UpgradingEncore(
            self, listen=[{"address": f"127.0.0.1:{port}", "mode": "reverse"},
                          {"address": f"127.0.0.1:{tls_port}", "mode": "reverse", "http2": True,
                           "tls": [self.pair]}],
            origin=[{"servers": [self.origin.url("")]}], admission={"policy": "always"},
            disk=[{"path": str(path), "size": "64MiB", "segment": "1MiB"}],
            state={"directory": str(self.directory / "state")}, upgrade={"idle": "1s"},
            timeouts={"drain": f"{int(2 * DOWNLOAD) + 5}s"})
        began = time.monotonic()
        self.begin_load(port, tls_port)

        def purge(_):
            try:
                status, text = proxy.admin(f"/purge?url=http://{NAME}/page/7", "POST")
            except OSError:
                return 0
            if status != 200:
                raise AssertionError(f"purge: {status} {text}")
            self.load.over.wait(0.05)
            return 1
        self.load.add("purge", purge)
        for i in range(self.rounds):
            proxy.sections["workers"]["count"] = (1, 4, 2)[i % 3]
            proxy.write_config()
            eventually(lambda: proxy.stats()["predecessors"] < 3, "an old process has ended",
                       10 * DOWNLOAD + 60)
            proxy.upgrade()
            self.load.wait_for("kept")
            self.load.wait_for("tls", 1)
        self.end_load("encore", began)
        eventually(lambda: proxy.stats()["predecessors"] == 0, "all old processes have ended",
                   10 * DOWNLOAD + 60)
        asked = self.origin.count()
        for i in range(200):
            with Client(port) as client:
                self.check(ask_on(client, f"/page/{i}", NAME), PAGE)
        # The purged page is requested again, as are those stored by an old process in its last moments.
        missed = self.origin.count() - asked
        print(f"encore: {missed} of 200 stored pages were asked for again", flush=True)
        proxy.stop()
        verified = subprocess.run([os.environ["ENCORE"], "disk", "verify", str(path)],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(0, verified.returncode, verified.stdout + verified.stderr)
        self.assertEqual([], self.load.failures[:10], f"{len(self.load.failures)} failed")

    def pem(self):
        path = self.directory / "both.pem"
        path.write_bytes(pathlib.Path(self.pair["certificate"]).read_bytes()
                         + pathlib.Path(self.pair["key"]).read_bytes())
        return path

    def test_nginx(self):
        if sanitized():
            self.skipTest("it is another program")
        nginx = need_program("nginx")
        port, tls_port = free_port(), free_port()
        work = self.directory / "nginx"
        work.mkdir()
        user = "user root;" if os.getuid() == 0 else ""
        config = work / "nginx.conf"
        config.write_text(f"""
worker_processes 2; pid {work}/nginx.pid; error_log {work}/error.log warn; {user}
worker_shutdown_timeout {int(2 * DOWNLOAD) + 5}s;
events {{ worker_connections 1024; }}
http {{
  access_log off; proxy_buffering on;
  client_body_temp_path {work}/body; proxy_temp_path {work}/temp; fastcgi_temp_path {work}/fcgi;
  uwsgi_temp_path {work}/uwsgi; scgi_temp_path {work}/scgi;
  proxy_cache_path {work}/cache keys_zone=z:10m;
  server {{
    listen 127.0.0.1:{port} reuseport; listen 127.0.0.1:{tls_port} ssl http2 reuseport;
    ssl_certificate {self.pair["certificate"]}; ssl_certificate_key {self.pair["key"]};
    client_max_body_size 10m;
    location / {{ proxy_pass {self.origin.url("").rstrip("/")}; proxy_cache z; }}
  }}
}}
""")
        self.start_daemon([nginx, "-p", work, "-c", config], port)
        pid_path = work / "nginx.pid"
        self.addCleanup(self.end_by_file, pid_path)
        began = time.monotonic()
        # They compress fields by a table that the client of HTTP/2 here does not keep.
        self.begin_load(port, tls_port, http2=False)
        for _ in range(self.rounds):
            old = int(pid_path.read_text())
            os.kill(old, signal.SIGUSR2)

            def is_replaced():
                try:
                    return int(pid_path.read_text()) != old
                except (OSError, ValueError):
                    return False
            eventually(is_replaced, "the new master runs")
            self.load.over.wait(0.2)
            os.kill(old, signal.SIGWINCH)
            os.kill(old, signal.SIGQUIT)
            self.load.wait_for("one-shot")
            self.load.wait_for("upload", 1)
            eventually(lambda: UpgradingEncore.ended(old) is not None, "the old master has ended",
                       10 * DOWNLOAD + 60)
        self.end_load("nginx", began)

    def test_haproxy(self):
        if sanitized():
            self.skipTest("it is another program")
        haproxy = need_program("haproxy")
        port, tls_port = free_port(), free_port()
        stats = self.directory / "haproxy.sock"
        config = self.directory / "haproxy.cfg"
        config.write_text(f"""
global
  maxconn 1000
  nbthread 2
  hard-stop-after {int(2 * DOWNLOAD) + 5}s
  stats socket {stats} level admin expose-fd listeners
defaults
  mode http
  timeout connect 10s
  timeout client 60s
  timeout server 60s
frontend f
  bind 127.0.0.1:{port}
  bind 127.0.0.1:{tls_port} ssl crt {self.pem()} alpn h2,http/1.1
  default_backend b
backend b
  server s {self.origin.authority}
""")
        pids = self.directory / "haproxy.pid"
        self.start_daemon([haproxy, "-D", "-p", pids, "-f", config], port)
        self.addCleanup(self.end_by_file, pids)
        began = time.monotonic()
        # They compress fields by a table that the client of HTTP/2 here does not keep.
        self.begin_load(port, tls_port, http2=False)
        for _ in range(self.rounds):
            old = pids.read_text().split()[0]
            self.run_client([haproxy, "-D", "-p", pids, "-f", config, "-x", stats, "-sf", old])
            self.load.wait_for("one-shot")
            self.load.wait_for("upload", 1)
        self.end_load("haproxy", began)

    def start_daemon(self, command, port):
        self.run_client(command)
        eventually(lambda: self.listens(port), f"{command[0]} listens")

    @staticmethod
    def listens(port):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            return False

    @staticmethod
    def end_by_file(path):
        try:
            os.kill(int(path.read_text().split()[0]), signal.SIGTERM)
        except (OSError, ValueError, IndexError):
            pass


if __name__ == "__main__":
    unittest.main()
