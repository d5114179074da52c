"""Parts of tests with a real PHP application: php-fpm, a browser that keeps cookies, and a relay that
tells when each purge of the application was answered."""

import http.client
import os
import pathlib
import re
import socket
import threading
import time
import urllib.parse

from harness import Case, Encore, eventually, free_port, need_program

FPM = """
[global]
daemonize = no
error_log = {dir}/fpm.log
[application]
{user}
listen = {dir}/fpm.sock
listen.mode = 0666
listen.backlog = 512
pm = static
pm.max_children = 6
"""


def fpm_name():
    found = sorted(path.name for path in pathlib.Path("/usr/sbin").glob("php-fpm*"))
    return found[-1] if found else "php-fpm"


def modules(*names):
    """-n leaves out the machine's php.ini; what an application needs is loaded by name."""
    loaded = [argument for name in names for argument in ("-d", f"extension={name}")]
    return ["-d", "zend_extension=opcache", *loaded]


def start_fpm(case, fpm, directory, extensions):
    (directory / "fpm.conf").write_text(FPM.format(
        dir=directory, user="user = root" if os.getuid() == 0 else ""))
    root = ["-R"] if os.getuid() == 0 else []
    case.start([fpm, *root, "-n", *extensions, "-y", directory / "fpm.conf"])
    eventually((directory / "fpm.sock").exists, "php-fpm listens")


class CacheCase(Case):
    """Starts caches before an application; each returns its port."""

    def start_encore(self, origin, rule):
        """Any client on loopback may purge. A rule of None: the defaults."""
        encore = Encore(self, listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse",
                                       "purge_clients": ["127.0.0.0/8"]}],
                        origin=[{"servers": [f"http://127.0.0.1:{origin}"]}],
                        **({"rule": [rule]} if rule else {}))
        return encore.port

    def start_varnish(self, config):
        program, port = need_program("varnishd"), free_port()
        path = self.directory / "varnish.vcl"
        path.write_text(config)
        self.start([program, "-F", "-f", path, "-a", f"127.0.0.1:{port}", "-s", "malloc,64m",
                    "-n", self.directory / "varnish", "-T", "none", "-j", "none"], port)
        return port


class PurgeRelay:
    """Takes the purges of an application: each goes on to the caches at `targets`. `answered` gets the
    path, the time it began and their statuses, before the application is answered."""

    def __init__(self, case, name, answered):
        self.name, self.answered, self.targets = name, answered, []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        case.addCleanup(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, client.makefile("rb") as lines:
            try:
                method, target, _ = lines.readline().decode().split(" ", 2)
                fields = {}
                while (field := lines.readline().decode().strip()):
                    name, _, value = field.partition(":")
                    fields[name.lower()] = value.strip()
                status = self._pass_on(method, target, fields)
                # Without PHP's curl an application reads until the connection ends.
                client.sendall(f"HTTP/1.1 {status} Purged\r\nContent-Length: 0\r\n"
                               "Connection: close\r\n\r\n".encode())
            except (OSError, ValueError):
                return

    def _pass_on(self, method, target, fields):
        began = time.monotonic()
        parts = urllib.parse.urlsplit(target)
        path = urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))
        host = parts.netloc or fields.get("host", self.name)
        sent = {"Host": host}
        if "x-purge-method" in fields:
            sent["X-Purge-Method"] = fields["x-purge-method"]
        statuses = [self._purge(port, method, path, sent) for port in self.targets]
        self.answered(path, began, statuses)
        return max(statuses, default=200)

    @staticmethod
    def _purge(port, method, path, fields):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, path, headers=fields)
            response = connection.getresponse()
            response.read()
            return response.status
        except OSError:
            return 502
        finally:
            connection.close()


class Browser:
    """A browser without scripts: one connection, cookies that are kept. Not thread-safe."""

    def __init__(self, port, name, cookies=None):
        self.port, self.name, self.connection = port, name, None
        self.cookies = dict(cookies or {})

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def ask(self, path, method="GET", body=None, headers=None):
        """(status, fields, bytes). A connection that the server has closed is made again, once."""
        fields = {"Host": self.name, **(headers or {})}
        if self.cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        for last in (False, True):
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
            try:
                self.connection.request(method, path, body, fields)
                response = self.connection.getresponse()
                data = response.read()
                break
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.close()
                if last:
                    raise
        if response.will_close:
            self.close()
        self.take_cookies(response)
        return response.status, response, data

    def take_cookies(self, response):
        for text in response.headers.get_all("Set-Cookie") or []:
            pair, *attributes = text.split(";")
            name, _, value = pair.strip().partition("=")
            is_over = any(re.search(r"1970|max-age=0", each, re.I) for each in attributes)
            if is_over or value == "deleted":
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
