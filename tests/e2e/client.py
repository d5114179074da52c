"""A client that sends exactly the given bytes and reads responses strictly."""

import collections
import socket
import struct

from harness import SLOWDOWN

Response = collections.namedtuple("Response", "status reason fields body interim trailers version")


class NoResponse(Exception):
    """The connection ended before a response was complete; `received` is what came."""

    def __init__(self, received):
        super().__init__(f"connection ended after {received[:200]!r}")
        self.received = received


def field(answer, name):
    """The field's values joined with a comma, or None."""
    values = [value for key, value in answer.fields if key == name.lower()]
    return ", ".join(values) if values else None


class Client:
    """One connection. Use as a context manager."""

    def __init__(self, port, host="127.0.0.1", timeout=30 * SLOWDOWN, source=None, receive_buffer=None):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.sock = socket.socket(family)
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            self.sock.bind((source, 0))
        self.sock.settimeout(timeout)
        self.sock.connect((host, port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def reset(self):
        """Ends the connection with a TCP reset: this client is gone and reads no more."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def shutdown(self):
        """Says that nothing more will be sent."""
        self.sock.shutdown(socket.SHUT_WR)

    def _more(self):
        try:
            data = self.sock.recv(1 << 18)
        except ConnectionError:
            data = b""
        self.buffer += data
        return bool(data)

    def read_until(self, mark):
        while mark not in self.buffer:
            if not self._more():
                raise NoResponse(self.buffer)
        data, _, self.buffer = self.buffer.partition(mark)
        return data

    def read_exactly(self, count):
        while len(self.buffer) < count:
            if not self._more():
                raise NoResponse(self.buffer)
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def read_to_end(self):
        while self._more():
            pass
        data, self.buffer = self.buffer, b""
        return data

    def at_end(self):
        """Waits for the peer to close; False where it sends something instead."""
        return not self.buffer and not self._more()

    def read_head(self):
        lines = self.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, _, rest = lines[0].partition(" ")
        status, _, reason = rest.partition(" ")
        fields = []
        for line in lines[1:]:
            name, _, value = line.partition(":")
            fields.append((name.lower(), value.strip()))
        return Response(int(status), reason, fields, b"", [], [], version)

    def read_response(self, method="GET"):
        """The next final response with its body; interim ones are kept aside in `interim`."""
        interim = []
        answer = self.read_head()
        while answer.status < 200 and answer.status != 101:
            interim.append(answer)
            answer = self.read_head()
        body, trailers = b"", []
        coding, length = field(answer, "transfer-encoding"), field(answer, "content-length")
        if method == "HEAD" or answer.status in (204, 304) or (
                method == "CONNECT" and answer.status == 200):
            pass
        elif coding == "chunked":
            body, trailers = self._read_chunked()
        elif length is not None:
            body = self.read_exactly(int(length))
        else:
            body = self.read_to_end()
        return answer._replace(body=body, interim=interim, trailers=trailers)

    def _read_chunked(self):
        body = []
        while (size := int(self.read_until(b"\r\n").split(b";")[0], 16)) > 0:
            body.append(self.read_exactly(size))
            if self.read_exactly(2) != b"\r\n":
                raise AssertionError("a chunk does not end in CRLF")
        trailers = []
        while line := self.read_until(b"\r\n").decode("latin-1"):
            name, _, value = line.partition(":")
            trailers.append((name.lower(), value.strip()))
        return b"".join(body), trailers

    def request(self, url, method="GET", fields=(), body=b"", version="HTTP/1.1"):
        """Sends one request in absolute form."""
        authority = url.split("/")[2]
        lines = [f"{method} {url} {version}", f"Host: {authority}",
                 *(f"{name}: {value}" for name, value in fields)]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def ask(self, url, method="GET", **options):
        """Sends one request in absolute form and reads its response."""
        self.request(url, method, **options)
        return self.read_response(method)


def get(port, url, **options):
    """One request to a proxy on a connection of its own."""
    with Client(port) as client:
        return client.ask(url, **options)
