"""Instructions of encore for one request, by valgrind's callgrind: the difference of two runs that differ in
the number of requests alone. Rows say what is requested, and how encore is configured for it."""

import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

from measure import Problem, read_response
from peers import free_port

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
BODY, LARGE = "x" * 1024, "x" * 65536


class Origin:
    """Answers on kept connections with 1 KiB, /large/ with 64; /miss may not be stored, all else may."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            sock, _ = self.listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    @staticmethod
    def _serve(sock):
        data = b""
        with sock:
            while True:
                while b"\r\n\r\n" not in data:
                    more = sock.recv(65536)
                    if not more:
                        return
                    data += more
                head, _, data = data.partition(b"\r\n\r\n")
                target = head.split(b" ", 2)[1]
                control = "no-store" if target == b"/miss" else "max-age=100000"
                vary = "Vary: Accept-Encoding\r\n" if target == b"/vary" else ""
                body = LARGE if target.startswith(b"/large/") else BODY
                sock.sendall(f"{HEAD}Cache-Control: {control}\r\n{vary}"
                             f"Content-Length: {len(body)}\r\n\r\n{body}".encode())


# `target` with a place for the request's number, if each asks for something else, or one of so many
# `urls`. `shadows` policies are simulated, on one key in 64; the baseline does without. `first`: requests
# before those that count. `memory`: of the cache, empty for the default.
Row = collections.namedtuple(
    "Row", "target connections logs is_hit disk rules urls shadows policy http2 tls first memory",
    defaults=[False, 0, 0, 0, "always", False, False, 0, ""])
SHADOWS = ["always", "second-hit", "nth-hit:3", "tinylfu+lru"]


def certificate(directory):
    """Files of a certificate for 127.0.0.1 and of its key."""
    made = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-days", "30", "-subj", "/CN=localhost", "-out", made[0], "-keyout", made[1]],
                   check=True, stderr=subprocess.DEVNULL)
    return made


def write_config(path, directory, origin, port, row):
    tls = ""
    if row.tls:
        tls = 'tls = [{{certificate = "{}", key = "{}"}}]'.format(*certificate(directory))
    path.write_text(f"""
[[listen]]
address = "127.0.0.1:{port}"
mode = "reverse"
{tls}
[[origin]]
servers = ["http://127.0.0.1:{origin.port}"]
[workers]
count = 1
[admission]
policy = "{row.policy}"
{"fill = false" if row.policy == "probation" else ""}
[admin]
address = "127.0.0.1:{free_port()}"
[log]
access = "{directory / 'access.log' if row.logs else ''}"
level = "warn"
""" + (f"""
[[disk]]
path = "{directory / 'disk'}"
size = "256MiB"
""" if row.disk else "") + (f"""
[cache]
memory = "{row.memory}"
""" if row.memory else "") + (f"""
[shadow]
policies = {json.dumps(SHADOWS[:row.shadows])}
""" if row.shadows else "") + "".join(rule(number, row.rules) for number in range(row.rules)))


def rule(number, count):
    """Half by other hosts, half by paths; the last one is for what is asked for."""
    if number == count - 1:
        return '[[rule]]\npath = "*"\nadmission = "always"\n'
    condition = f'host = "*.h{number}.example"' if number % 2 else f'path = "/p{number}/*"'
    return f'[[rule]]\n{condition}\nfresh = "1h"\n'


class Client:
    """A connection that has one request at a time in progress. Owns the socket."""

    def __init__(self, sock):
        self.sock = sock

    def ask(self, target):
        self.sock.sendall(
            (f"GET {target} HTTP/1.1\r\nHost: site.example\r\nUser-Agent: bench/1\r\n"
             "Accept: */*\r\nAccept-Encoding: gzip, br\r\n\r\n").encode())
        read_response(self.sock)


class Http2Client(Client):
    """The same by HTTP/2 with prior knowledge: what repeats comes from the dynamic table."""

    FIELDS = ((1, "site.example"), (58, "bench/1"), (19, "*/*"), (16, "gzip, br"))  # by static name
    SETTINGS, HEADERS, END_STREAM, END_HEADERS, ACK = 4, 1, 1, 4, 1

    def __init__(self, sock):
        super().__init__(sock)
        self.stream, self.data = -1, b""
        # Windows that need no update.
        sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                     + self.frame(self.SETTINGS, 0, 0, struct.pack(">HI", 4, (1 << 31) - 1))
                     + self.frame(8, 0, 0, struct.pack(">I", (1 << 31) - 65536)))

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload

    def ask(self, target):
        self.stream += 2
        if self.stream == 1:
            authority, *others = (bytes([0x40 | name, len(value)]) + value.encode()
                                  for name, value in self.FIELDS)
        else:
            authority, *others = (bytes([0x80 | 62 + i]) for i in reversed(range(len(self.FIELDS))))
        path = bytes([4, len(target)]) + target.encode()
        block = b"\x82\x86" + authority + path + b"".join(others)
        self.sock.sendall(self.frame(self.HEADERS, self.END_STREAM | self.END_HEADERS, self.stream, block))
        while True:
            kind, flags, stream = self.read_frame()
            if kind == self.SETTINGS and not flags & self.ACK:
                self.sock.sendall(self.frame(self.SETTINGS, self.ACK, 0, b""))
            if kind in (3, 7):
                raise Problem("a stream or connection of HTTP/2 was ended")
            if kind <= self.HEADERS and stream == self.stream and flags & self.END_STREAM:
                return

    def read_frame(self):
        while len(self.data) < 9 or len(self.data) < 9 + int.from_bytes(self.data[:3]):
            more = self.sock.recv(65536)
            if not more:
                raise Problem("connection closed within a frame")
            self.data += more
        kind, flags, stream = struct.unpack(">BBI", self.data[3:9])
        self.data = self.data[9 + int.from_bytes(self.data[:3]):]
        return kind, flags, stream


def secure(sock):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its own certificate
    return context.wrap_socket(sock)


def connected(port, process):
    end = time.monotonic() + 120
    while True:
        with contextlib.suppress(OSError):
            sock = socket.create_connection(("127.0.0.1", port), timeout=60)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        if process.poll() is not None or time.monotonic() > end:
            raise Problem("encore does not start under valgrind")
        time.sleep(0.05)


@contextlib.contextmanager
def started(command, origin, row):
    """(process, its clients, its port): encore by `command`, configured for the row. The caller that ends it
    reads its standard error."""
    with tempfile.TemporaryDirectory(prefix="encore-bench-") as name:
        directory = pathlib.Path(name)
        port = free_port()
        config = directory / "encore.toml"
        write_config(config, directory, origin, port, row)
        process = subprocess.Popen([*command, "--config", str(config)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        clients = []
        try:
            for _ in range(row.connections):
                sock = connected(port, process)
                clients.append((Http2Client if row.http2 else Client)(secure(sock) if row.tls else sock))
            yield process, clients, port
        finally:
            for client in clients:
                client.sock.close()
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stderr.close()


def can_pin(cpu):
    return cpu in os.sched_getaffinity(0) and shutil.which("taskset") is not None


def target_of(row, number):
    """As many digits each time."""
    return row.target.format(10_000_000 + (number % row.urls if row.urls else number))


def instructions(program, origin, row, requests, profile="/dev/null"):
    """Instructions of the whole process for this many requests."""
    # Without the time stamp counter's help, and with the same addresses in each run.
    command = ["setarch", "-R", "valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", str(program)]
    with started(command, origin, row) as (process, clients, _):
        for number in range(row.first + requests + 2 * row.connections):
            clients[number % row.connections].ask(target_of(row, number))
        for client in clients:
            client.sock.close()
        process.terminate()
        report = process.communicate(timeout=120)[1]
    found = re.search(r"Collected : (\d+)", report)
    if not found:
        raise Problem("valgrind: " + report.strip()[-200:])
    return int(found.group(1))


def per_request(program, origin, row, requests, profile="/dev/null"):
    few = requests // 4
    return (instructions(program, origin, row, requests, profile)
            - instructions(program, origin, row, few)) / (requests - few)
