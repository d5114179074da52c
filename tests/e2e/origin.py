"""A scripted origin: byte-exact responses, a count of requests, and every way to misbehave."""

import collections
import email.utils
import socket
import struct
import threading

Request = collections.namedtuple("Request", "method target version fields body head trailers")


class Closed(Exception):
    """The peer has gone."""


def response(body=b"", status="200 OK", **fields):
    """A complete response. Field names are written with - for _; a value of None leaves it out."""
    if isinstance(body, str):
        body = body.encode()
    named = {"Content-Length": len(body)}
    named.update({name.replace("_", "-"): value for name, value in fields.items()})
    lines = [f"{name}: {value}\r\n" for name, value in named.items() if value is not None]
    return f"HTTP/1.1 {status}\r\n{''.join(lines)}\r\n".encode() + body


def fresh(body=b"", seconds=600, **fields):
    """A complete response that a shared cache may store for `seconds`."""
    return response(body, Cache_Control=f"max-age={seconds}",
                    Date=email.utils.formatdate(usegmt=True), **fields)


def chunked(*chunks, trailers="", **fields):
    """A complete chunked response that may be stored."""
    head = response(Content_Length=None, Transfer_Encoding="chunked", Cache_Control="max-age=600",
                    **fields)
    body = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks if c)
    return head + body + b"0\r\n" + trailers.encode() + b"\r\n"


class Exchange:
    """One request on one connection, given to a scripted route."""

    def __init__(self, origin, sock, request):
        self.origin, self.sock, self.request = origin, sock, request
        self.keep = True

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise Closed from error

    def close(self):
        """Closes after what was sent; the peer sees an orderly end."""
        self.keep = False

    def reset(self):
        """Closes with a TCP reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.keep = False

    def wait(self, event):
        """Stalls until the test sets the event (or the test ends)."""
        while not event.wait(0.05):
            if self.origin.stopped:
                raise Closed

    def wait_until_closed(self):
        """Stalls until the peer closes its connection."""
        self.sock.settimeout(0.05)
        while not self.origin.stopped:
            try:
                if not self.sock.recv(65536):
                    return
            except TimeoutError:
                continue
            except OSError:
                return


class Origin:
    """Listens on a free port; one thread a connection. A route is the bytes of a response, or a
    function of an Exchange that returns such bytes or sends by itself and returns None."""

    def __init__(self, case, routes=None, host="127.0.0.1", tls=None, port=0, default=None):
        self.routes = dict(routes or {})
        self.default = default or response(b"no such\n", "404 Not Found")
        self.tls, self.host = tls, host
        self.requests = []
        self.connections = 0
        self.stopped = False
        self._lock = threading.Lock()
        self._sockets = set()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.socket(family)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((host, port))
        self._listener.listen(1024)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        case.addCleanup(self.stop)

    def url(self, path="/"):
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{self.port}{path}"

    @property
    def authority(self):
        return self.url("")[8 if self.tls else 7:]

    def count(self, path=None):
        """Requests seen, of this path or of all."""
        with self._lock:
            return sum(1 for r in self.requests if path is None or r.target == path)

    def last(self, path=None):
        with self._lock:
            return [r for r in self.requests if path is None or r.target == path][-1]

    def stop(self):
        """Stops listening and closes every connection."""
        self.stopped = True
        with self._lock:
            sockets = [self._listener, *self._sockets]
        for sock in sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            if sock is self._listener:
                sock.close()

    def _accept(self):
        while not self.stopped:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._sockets.add(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, raw):
        sock = raw
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                sock = self.tls.wrap_socket(raw, server_side=True)
            reader = sock.makefile("rb")
            while self._one(sock, reader):
                pass
        except (Closed, OSError, ValueError):
            pass
        finally:
            with self._lock:
                self._sockets.discard(raw)
            try:
                reader.close()
            except (UnboundLocalError, OSError):
                pass
            sock.close()

    def _one(self, sock, reader):
        request = self._read(sock, reader)
        if request is None:
            return False
        with self._lock:
            self.requests.append(request)
        route = self.routes.get(request.target.partition("?")[0], self.default)
        exchange = Exchange(self, sock, request)
        if callable(route):
            route = route(exchange)
        if route is not None:
            if request.method == "HEAD":
                route = route[:route.index(b"\r\n\r\n") + 4]
            exchange.send(route)
        return exchange.keep

    @staticmethod
    def _read(sock, reader):
        lines = []
        while True:
            line = reader.readline(1 << 20)
            if not line:
                return None
            if line in (b"\r\n", b"\n"):
                break
            lines.append(line)
        method, target, version = lines[0].decode("latin-1").split()
        fields = []
        for line in lines[1:]:
            name, _, value = line.decode("latin-1").partition(":")
            fields.append((name.lower(), value.strip()))
        named = dict(fields)
        trailers = b""
        if named.get("expect", "").lower() == "100-continue":
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in named.get("transfer-encoding", ""):
            body = b""
            while (size := int(reader.readline().split(b";")[0], 16)) > 0:
                body += reader.read(size)
                reader.readline()
            while (line := reader.readline()) not in (b"\r\n", b"\n"):
                if not line:
                    return None
                trailers += line
        else:
            length = int(named.get("content-length", 0))
            body = reader.read(length)
            if len(body) < length:
                return None
        return Request(method, target, version, fields, body, b"".join(lines), trailers)
