"""Unix sockets as listeners and origins."""

import os
import pathlib
import signal
import socket
import stat
import subprocess
import threading
import unittest

import websocket
from client import Client, NoResponse, field
from harness import Case, clean_environment, eventually, free_port, need_program
from origin import Origin, fresh, response


class UnixClient(Client):
    def __init__(self, path, timeout=30):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(timeout)
        self.sock.connect(str(path))
        self.buffer = b""


class UnixOrigin(Origin):
    """An origin on a file in place of a port."""

    def __init__(self, case, path, routes=None, default=None):
        self.path = path
        super().__init__(case, routes, default=default)
        self._listener.close()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()


    def _serve(self, raw):
        # A Unix socket has no delay to be switched off.
        class Plain:
            def __init__(self, sock):
                self.sock = sock

            def setsockopt(self, level, *arguments):
                if level != socket.IPPROTO_TCP:
                    self.sock.setsockopt(level, *arguments)

            def __getattr__(self, name):
                return getattr(self.sock, name)
        super()._serve(Plain(raw))


def ask(client, path, host="site.example", method="GET", fields=()):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}",
             *(f"{name}: {value}" for name, value in fields), "", ""]
    client.send("\r\n".join(lines))
    return client.read_response(method)


class Listeners(Case):
    def reverse(self, origin, start=True, more=(), **listen):
        self.path = self.directory / "front.sock"
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "forward"},
                    {"address": f"unix:{self.path}", "mode": "reverse", **listen}, *more],
            origin=[{"servers": [origin.url("")]}], start=start)

    def test_a_site_is_served_and_cached_over_a_file(self):
        origin = Origin(self, {"/page": fresh(b"page"), "/chat": websocket.echo})
        encore = self.reverse(origin)
        with UnixClient(self.path) as client:
            for expected in ("first-request", "second-request", "; hit"):
                answer = ask(client, "/page")
                self.assertEqual(b"page", answer.body)
                self.assertIn(expected, field(answer, "Cache-Status"))
            self.assertEqual("127.0.0.1", dict(origin.last().fields)["x-forwarded-for"])
        with UnixClient(self.path) as client:
            client.send("GET /chat HTTP/1.1\r\nHost: x\r\n" + "".join(
                f"{n}: {v}\r\n" for n, v in websocket.handshake_fields()) + "\r\n")
            self.assertEqual(101, client.read_head().status)
            data = os.urandom(200_000)
            sender = websocket.spawn(client.send, websocket.frame(data, masked=True))
            self.assertEqual(data, websocket.read_frame(client.read_exactly)[1])
            sender.join()
        self.assertIn(f"unix:{self.path} (reverse)", encore.output())
        self.assertEqual("127.0.0.1", encore.access_records(3)[0]["client"])
        encore.stop()
        self.assertFalse(self.path.exists())
        self.assertEqual([], list(self.directory.glob("front.sock*")))

    def test_all_workers_answer_many_at_once(self):
        origin = Origin(self, default=response(b"page"))
        encore = self.reverse(origin)
        faults = []

        def one(lane):
            try:
                for turn in range(10):
                    with UnixClient(self.path) as client:
                        assert ask(client, f"/{lane}/{turn}").body == b"page"
            except Exception as error:  # noqa: BLE001
                faults.append(repr(error))
        threads = [websocket.spawn(one, lane) for lane in range(16)]
        for thread in threads:
            thread.join(60)
        self.assertEqual([], faults)
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "all have gone")

    def test_the_file_has_the_permissions_that_are_asked_for(self):
        origin = Origin(self)
        encore = self.reverse(origin, socket_mode="0600")
        mode = self.path.lstat().st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(0o600, stat.S_IMODE(mode))
        encore.sections["listen"][1]["socket_mode"] = "0666"
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: stat.S_IMODE(self.path.lstat().st_mode) == 0o666, "it is changed")

    def check(self, encore):
        return subprocess.run([encore.program, "--config", encore.config_path, "--check-config"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, text=True,
                              env=clean_environment(), check=False)

    def refused_at_start(self, encore):
        encore.write_config()
        checked = self.check(encore)
        self.assertEqual(1, checked.returncode, checked.stdout)
        ended = subprocess.run([encore.program, "--config", encore.config_path], timeout=60,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=clean_environment(), check=False)
        self.assertEqual(1, ended.returncode)
        self.assertIn("listen.1.address", checked.stderr)
        return ended.stderr + checked.stderr

    def test_a_file_that_nobody_listens_on_is_replaced_and_nothing_else(self):
        origin = Origin(self, default=response(b"page"))
        encore = self.reverse(origin, start=False)
        self.path.write_text("precious")
        self.assertIn("the file exists and is not a socket", self.refused_at_start(encore))
        self.assertEqual("precious", self.path.read_text())
        self.path.unlink()
        other = socket.socket(socket.AF_UNIX)
        other.bind(str(self.path))
        other.listen(8)
        self.assertIn("Address already in use", self.refused_at_start(encore))
        other.close()  # nobody listens any more; the file is still there
        self.assertTrue(self.path.exists())
        encore.start()
        with UnixClient(self.path) as client:
            self.assertEqual(b"page", ask(client, "/").body)
        checked = self.check(encore)
        self.assertIn("in use by a running encore", checked.stdout)

    def test_a_file_that_another_has_made_meanwhile_is_left(self):
        encore = self.reverse(Origin(self))
        self.path.unlink()
        other = socket.socket(socket.AF_UNIX)
        self.addCleanup(other.close)
        other.bind(str(self.path))
        encore.stop()
        self.assertTrue(self.path.exists())

    def test_a_killed_proxys_file_is_replaced_by_the_next(self):
        origin = Origin(self, default=response(b"page"))
        encore = self.reverse(origin)
        encore.process.kill()
        encore.process.wait()
        encore.process = None
        self.assertTrue(self.path.exists())
        encore.start()
        with UnixClient(self.path) as client:
            self.assertEqual(b"page", ask(client, "/").body)

    def test_curl_and_a_client_that_leaves(self):
        origin = Origin(self, default=response(b"x" * 3_000_000))
        encore = self.reverse(origin)
        ended = self.run_client([need_program("curl"), "-sS", "--unix-socket", self.path,
                                 "http://site.example/a"])
        self.assertEqual(3_000_000, len(ended.stdout))
        client = UnixClient(self.path)
        client.send("GET /b HTTP/1.1\r\nHost: h\r\n\r\n")
        client.read_exactly(1000)
        client.close()
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "it is gone")


class Origins(Case):
    def reverse(self, servers, **sections):
        return self.encore(listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
                           origin=[{"servers": servers, **sections.pop("route", {})}], **sections)

    def test_an_application_behind_a_file_is_asked_and_cached(self):
        path = self.directory / "app.sock"
        origin = UnixOrigin(self, path, {"/page": fresh(b"page"), "/chat": websocket.echo,
                                         "/big": fresh(os.urandom(2_000_000))})
        encore = self.reverse([f"unix:{path}"])
        with Client(encore.port) as client:
            for expected in ("first-request", "second-request", "; hit"):
                answer = ask(client, "/page")
                self.assertEqual(b"page", answer.body)
                self.assertIn(expected, field(answer, "Cache-Status"))
            self.assertEqual("site.example", dict(origin.last().fields)["host"])
            self.assertEqual(2_000_000, len(ask(client, "/big").body))
            client.send("GET /chat HTTP/1.1\r\nHost: x\r\n" + "".join(
                f"{n}: {v}\r\n" for n, v in websocket.handshake_fields()) + "\r\n")
            self.assertEqual(101, client.read_head().status)
            client.send(websocket.frame(b"hello", masked=True))
            self.assertEqual(b"hello", websocket.read_frame(client.read_exactly)[1])
        self.assertGreaterEqual(encore.metrics()["encore_origin_reuses_total"], 1)
        record = encore.access_records(1)[0]  # as docs/LOGS.md has it
        self.assertEqual((f"unix:{path}", "127.0.0.1:0"), (record["server"], record["origin"]))

    def test_its_health_is_checked(self):
        path = self.directory / "app.sock"
        origin = UnixOrigin(self, path, {"/health": response(b"well")}, default=response(b"x"))
        self.reverse([f"unix:{path}"], route={"health_path": "/health", "health_interval": "200ms"})
        eventually(lambda: origin.count("/health") >= 2, "it is asked again and again")

    def test_host_header_origin_says_localhost(self):
        path = self.directory / "app.sock"
        origin = UnixOrigin(self, path, default=response(b"x"))
        encore = self.reverse([f"unix:{path}"], route={"host_header": "origin"})
        with Client(encore.port) as client:
            ask(client, "/")
        self.assertEqual("localhost", dict(origin.last().fields)["host"])

    def test_where_nobody_listens_it_is_502_and_another_server_is_asked(self):
        gone = self.directory / "gone.sock"
        encore = self.reverse([f"unix:{gone}"])
        with Client(encore.port) as client:
            answer = ask(client, "/")
        self.assertEqual((502, True), (answer.status, "connect-refused" in
                                       field(answer, "Cache-Status")))
        path = self.directory / "app.sock"
        UnixOrigin(self, path, default=response(b"page"))
        both = self.reverse([f"unix:{gone}", f"unix:{path}"])
        for number in range(6):
            with Client(both.port) as client:
                self.assertEqual(b"page", ask(client, f"/{number}").body)

    def test_what_is_no_file_name_is_refused(self):
        encore = self.encore(start=False)
        for text in ("unix:", "unix:relative", "unix:/" + "x" * 100, "unix:/folder/"):
            for section in ({"origin": [{"servers": [text]}]},
                            {"listen": [{"address": text, "mode": "forward"}]}):
                encore.sections.pop("origin", None)
                encore.sections["listen"] = [{"address": "127.0.0.1:0", "mode": "forward"}]
                encore.sections.update(section)
                encore.write_config()
                ended = subprocess.run(
                    [encore.program, "--config", encore.config_path, "--check-config"],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, text=True,
                    env=clean_environment(), check=False)
                self.assertEqual(2, ended.returncode, text)
                self.assertIn("unix:", ended.stderr)


if __name__ == "__main__":
    unittest.main()
