"""Shared parts of the tests of interception: an authority made by encore ca create, an origin
behind names of the test's own, a proxy that decrypts some of them, and clients that trust it or do
not."""

import socket
import ssl
import subprocess
import threading

from client import Client
from harness import Case, CertificateAuthority, clean_environment
from name_server import NameServer
from origin import Origin, fresh

HOST = "packages.example"


class RawServer:
    """Says `greeting` first, keeps what it gets, and echoes it."""

    def __init__(self, case, greeting=b""):
        self.greeting, self.received = greeting, b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        case.addCleanup(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with sock:
            try:
                sock.sendall(self.greeting)
                while data := sock.recv(65536):
                    self.received += data
                    sock.sendall(data)
            except OSError:
                pass


class Inside(Client):
    """A client inside a CONNECT: TLS with the server that responds there."""

    def __init__(self, port, host, origin_port, context, source=None, sni=None, fields=()):
        super().__init__(port, source=source)
        self.authority = f"{host}:{origin_port}"
        lines = [f"CONNECT {self.authority} HTTP/1.1", f"Host: {self.authority}",
                 *(f"{name}: {value}" for name, value in fields)]
        self.send("\r\n".join(lines) + "\r\n\r\n")
        self.connected = self.read_response("CONNECT")
        if self.connected.status == 200:
            self.sock = context.wrap_socket(self.sock, server_hostname=sni or host)

    def get(self, path, method="GET", host=None, fields=(), body=b""):
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host or self.authority}",
                 *(f"{name}: {value}" for name, value in fields)]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return self.read_response(method)

    def issuer(self):
        """The common name of who has signed what was shown."""
        names = dict(pair[0] for pair in self.sock.getpeercert()["issuer"])
        return names["commonName"]


TRUST = ("CERT", "SSL", "CA_BUNDLE", "CAINFO", "CAPATH", "PIP_", "NPM_CONFIG")


def of_a_machine(**more):
    """The environment without what this machine says of authorities and packages."""
    kept = {name: value for name, value in clean_environment().items()
            if not any(word in name.upper() for word in TRUST)}
    return {**kept, **{name: str(value) for name, value in more.items()}}


class InterceptCase(Case):
    hosts = [HOST, "*.many.example"]

    def setUp(self):
        super().setUp()
        self.public = CertificateAuthority(self)
        self.names = NameServer(self)
        self.names.answers[HOST] = [["127.0.0.1"]]
        self.home = self.directory / "authority"

    def create(self, *hosts, any_host=False):
        """The authority that clients trust."""
        words = [word for host in hosts for word in ("--host", host)]
        self.ca("create", "--out", self.home, *words, *(["--any-host"] if any_host else []))
        return self.home / "ca.crt"

    def ca(self, *words):
        import os
        ended = subprocess.run([os.environ["ENCORE"], "ca", *map(str, words)],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env=clean_environment(), timeout=120)
        self.assertEqual(0, ended.returncode, ended.stdout.decode())
        return ended.stdout.decode()

    def start_origin(self, routes=None, name=HOST, default=None, **more):
        return Origin(self, routes or {}, tls=self.public.server_context(name),
                      default=default or fresh(b"packages"), **more)

    def settings(self, *origins, intercept=None, **sections):
        ports = [origin.port for origin in origins]
        settings = {
            "admission": {"policy": "always"},
            "forward": {"connect_ports": ports},
            "upstream": {"nameservers": [self.names.address],
                         "tls_ca_file": str(self.public.certificate)},
            "intercept": {"ca_certificate": str(self.home / "ca.crt"),
                          "ca_key": str(self.home / "ca.key"),
                          "hosts": self.hosts, "ports": ports,
                          # The first refusal is enough.
                          "reject_after": 1, "reject_first": "1h", **(intercept or {})},
        }
        for name, section in sections.items():
            if isinstance(section, dict):
                settings[name] = {**settings.get(name, {}), **section}
            else:
                settings[name] = section
        return settings

    def proxy(self, *origins, **sections):
        if not self.home.exists():
            self.create(*self.hosts)
        return self.encore(**self.settings(*origins, **sections))

    def trusting(self):
        """Returns the context of a client that trusts our authority, and nothing else."""
        return ssl.create_default_context(cafile=self.home / "ca.crt")

    def unprepared(self):
        """Returns the context of a client that trusts only the public authorities."""
        return ssl.create_default_context(cafile=self.public.certificate)

    def is_spliced(self, encore, origin):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for file in (self.public.certificate, self.home / "ca.crt"):
            context.load_verify_locations(file)
        client = self.inside(encore, origin, context)
        client.get("/")
        return client.issuer() == "encore test CA"

    def inside(self, encore, origin, context=None, host=HOST, **options):
        client = Inside(encore.port, host, origin.port, context or self.trusting(), **options)
        self.addCleanup(client.close)
        return client

    def connect(self, encore, origin, host=HOST):
        """A plain connection behind its 200."""
        client = Client(encore.port)
        self.addCleanup(client.close)
        authority = f"{host}:{origin.port}"
        client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
        self.assertEqual(200, client.read_response("CONNECT").status)
        return client

    def hello(self, name=HOST, context=None):
        """The first bytes of a client of TLS."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = context or self.trusting()
        if name is None:
            context.check_hostname = False
        session = context.wrap_bio(incoming, outgoing, server_hostname=name)
        try:
            session.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()


def half_close(sock):
    sock.shutdown(socket.SHUT_WR)
