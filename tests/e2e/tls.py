"""TLS to the proxy: certificates of every kind, and clients that speak it."""

import contextlib
import re
import socket
import ssl
import subprocess
import types

from client import Client
from harness import SLOWDOWN, Case, CertificateAuthority, free_port, need_program
from origin import Origin, fresh


class Authority(CertificateAuthority):
    """A CA that signs whatever a test needs."""

    def __init__(self, case, name="ca"):
        own = types.SimpleNamespace(directory=case.directory / name)
        own.directory.mkdir()
        super().__init__(own)
        self.name, self.made = name, 0

    def pair(self, *names, rsa=False, days=2, subject=None, signer=None, authority=False, end=None):
        """{certificate, key} for these names, as a table of the config; good until `end`."""
        self.made += 1
        stem = f"{self.name}-{self.made}"
        key, request, certificate, extensions = (self.directory / f"{stem}.{end}"
                                                 for end in ("key", "csr", "pem", "ext"))
        new = ["rsa:2048"] if rsa else ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        lines = ["basicConstraints=critical,CA:TRUE"] if authority else []
        if names:
            lines.append("subjectAltName=" + ",".join(f"DNS:{name}" for name in names))
        extensions.write_text("\n".join(lines) + "\n")
        self._run("req", "-newkey", *new, "-nodes", "-subj", f"/CN={subject or names[0]}",
                  "-keyout", key, "-out", request)
        by = signer or {"certificate": self.certificate, "key": self.key}
        if end is not None:
            self._sign_until(end, by, request, extensions, certificate)
            return {"certificate": str(certificate), "key": str(key)}
        self._run("x509", "-req", "-in", request, "-CA", by["certificate"], "-CAkey", by["key"],
                  "-CAcreateserial", "-days", days, "-extfile", extensions, "-out", certificate)
        return {"certificate": str(certificate), "key": str(key)}

    def _sign_until(self, end, by, request, extensions, certificate):
        """To the second, which `openssl x509` cannot do everywhere."""
        settings = self.directory / "until.cnf"
        (self.directory / "index.txt").write_text("")
        settings.write_text(
            f"[ca]\ndefault_ca=c\n[c]\ndatabase={self.directory}/index.txt\nrand_serial=yes\n"
            f"new_certs_dir={self.directory}\ndefault_md=sha256\npolicy=p\n"
            "[p]\ncommonName=supplied\n")
        self._run("ca", "-batch", "-config", settings, "-in", request, "-cert", by["certificate"],
                  "-keyfile", by["key"], "-startdate", "20200101000000Z", "-enddate",
                  end.strftime("%Y%m%d%H%M%SZ"), "-extfile", extensions, "-notext",
                  "-out", certificate)

    def chain(self, name, *certificates):
        """A file of these, one behind the other."""
        path = self.directory / name
        path.write_text("".join(open(each, encoding="ascii").read() for each in certificates))
        return str(path)

    def trusting(self, **options):
        """A client's context that trusts this CA alone."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        for name, value in options.items():
            setattr(context, name, value)
        return context


class SecureClient(Client):
    """A Client by TLS."""

    def __init__(self, port, context, name, session=None, **options):
        super().__init__(port, **options)
        try:
            self.sock = context.wrap_socket(self.sock, server_hostname=name, session=session)
        except BaseException:
            self.sock.close()
            raise

    def shown(self):
        """The names of the server's certificate."""
        return [value for kind, value in self.sock.getpeercert()["subjectAltName"] if kind == "DNS"]


class TlsCase(Case):
    """A reverse proxy that speaks TLS for www.example, before an origin of pages."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self)
        self.pair = self.authority.pair("www.example")

    def serve(self, tls=None, plain=False, listen=None, **sections):
        """Starts it; `self.port` speaks TLS, `self.plain_port` does not."""
        self.origin = Origin(self, default=fresh(b"page", Content_Type="text/plain"))
        self.port = free_port()
        listeners = [{"address": f"127.0.0.1:{self.port}", "mode": "reverse",
                      "tls": tls or [self.pair], **(listen or {})}]
        if plain is not False:
            self.plain_port = free_port()
            listeners.append({"address": f"127.0.0.1:{self.plain_port}", "mode": "reverse",
                              **(plain or {})})
        sections.setdefault("origin", [{"servers": [self.origin.url("")]}])
        self.proxy = self.encore(listen=listeners, **sections)
        return self.proxy

    def client(self, name="www.example", context=None, **options):
        return SecureClient(self.port, context or self.authority.trusting(), name, **options)

    def ask(self, path="/", name="www.example", context=None, method="GET", fields=(), **options):
        with self.client(name, context, **options) as client:
            return ask_on(client, path, name, method, fields)

    def counter(self, name):
        return self.proxy.metrics()[f"encore_{name}"]

    def s_client(self, *arguments, name="www.example", request=None):
        """Returns the report of openssl s_client about a handshake."""
        openssl = need_program("openssl")
        named = ["-servername", name] if name else ["-noservername"]
        ended = subprocess.run(
            [openssl, "s_client", "-connect", f"127.0.0.1:{self.port}", *named, "-CAfile",
             str(self.authority.certificate), *map(str, arguments)], input=request or b"",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60 * SLOWDOWN, check=False)
        return ended.stdout.decode(errors="replace")

    def check_config(self, proxy=None, refused=True):
        """Returns the report of --check-config about the present config."""
        proxy = proxy or self.proxy
        proxy.write_config()
        ended = self.run_client([proxy.program, "--config", proxy.config_path, "--check-config"],
                                check=False)
        self.assertEqual(refused, ended.returncode != 0, ended.stdout.decode())
        return ended.stdout.decode()


def ask_on(client, path, name="www.example", method="GET", fields=()):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {name}", *(f"{k}: {v}" for k, v in fields)]
    client.send("\r\n".join(lines) + "\r\n\r\n")
    return client.read_response(method)


def hello(name="www.example"):
    """The bytes with which a client begins."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    connection = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def subject_of(text):
    match = re.search(r"^subject=(.*)$", text, re.M)
    return match and match.group(1).strip()


def raw(port, data):
    """Returns the proxy's response to these bytes, until it ends the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=30 * SLOWDOWN) as sock:
        with contextlib.suppress(OSError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        said = b""
        with contextlib.suppress(OSError):
            while part := sock.recv(65536):
                said += part
        return said
