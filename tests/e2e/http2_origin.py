"""An origin of HTTP/2 by hand: one thread for each connection runs a script over its frames."""

import socket
import struct
import threading

import http2
from harness import DEADLINE


class Gone(Exception):
    """The proxy has ended the connection."""


class Request:
    """A request as far as its stream has arrived."""

    def __init__(self, stream):
        self.stream = stream
        self.fields = []
        self.trailers = None
        self.body = b""
        self.ended = False
        self.reset = None      # the code
        self.window = 65535    # to send

    def __getitem__(self, name):
        values = [value for key, value in self.fields if key == name]
        return ", ".join(values) if values else None


class Connection:
    """Frames come by read(); windows are given back immediately unless `gives_back` is False."""

    def __init__(self, origin, sock, settings):
        self.origin, self.sock = origin, sock
        self.sock.settimeout(DEADLINE)
        self.streams = {}
        self.order = []            # requests whose head has come, the oldest first
        self.pings = []            # payloads that came back
        self.goaway = None         # (last stream, code, reason)
        self.window = 65535        # to send, of the connection
        self.first_window = 65535
        self.gives_back = True
        self.block = None
        if self._exactly(len(http2.PREFACE)) != http2.PREFACE:
            raise Gone
        self.frame(http2.SETTINGS, 0, 0, b"".join(struct.pack(">HI", *each) for each in settings))

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            try:
                more = self.sock.recv(size - len(data))
            except OSError as error:
                raise Gone from error
            if not more:
                raise Gone
            data += more
        return data

    def frame(self, kind, flags, stream, payload=b""):
        head = struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream)
        try:
            self.sock.sendall(head + payload)
        except OSError as error:
            raise Gone from error

    def read(self):
        """Takes one frame and does what it asks for."""
        head = self._exactly(9)
        kind, flags, stream = head[3], head[4], struct.unpack(">I", head[5:])[0]
        payload = self._exactly(int.from_bytes(head[:3], "big"))
        request = self.streams.get(stream)
        if kind == http2.SETTINGS and not flags & http2.ACK:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[at:at + 6])
                if name == http2.INITIAL_WINDOW_SIZE:
                    for each in self.streams.values():
                        each.window += value - self.first_window
                    self.first_window = value
            self.frame(http2.SETTINGS, http2.ACK, 0)
        elif kind == http2.PING:
            if flags & http2.ACK:
                self.pings.append(payload)
            else:
                self.frame(http2.PING, http2.ACK, 0, payload)
        elif kind in (http2.HEADERS, http2.CONTINUATION):
            if kind == http2.HEADERS:
                self.block = (flags, b"")
            self.block = (self.block[0], self.block[1] + payload)
            if flags & http2.END_HEADERS:
                self._head(stream, *self.block)
        elif kind == http2.DATA:
            request.body += payload
            request.ended = bool(flags & http2.END_STREAM)
            if payload and self.gives_back:
                self.frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload)))
                self.frame(http2.WINDOW_UPDATE, 0, stream, struct.pack(">I", len(payload)))
        elif kind == http2.RST_STREAM:
            request.reset = struct.unpack(">I", payload)[0]
        elif kind == http2.GOAWAY:
            last, code = struct.unpack(">II", payload[:8])
            self.goaway = (last, code, payload[8:].decode())
        elif kind == http2.WINDOW_UPDATE:
            if stream == 0:
                self.window += struct.unpack(">I", payload)[0]
            elif request is not None:
                request.window += struct.unpack(">I", payload)[0]

    def _head(self, stream, flags, block):
        fields = http2.decode(block)
        request = self.streams.get(stream)
        if request is None:
            request = self.streams[stream] = Request(stream)
            request.window = self.first_window
            request.fields = fields
            self.order.append(request)
            self.origin.note(request)
        else:
            request.trailers = fields
        request.ended = bool(flags & http2.END_STREAM)

    def until(self, condition):
        while not condition():
            self.read()

    def next(self):
        """The next request whose head has come."""
        self.until(lambda: self.order)
        return self.order.pop(0)

    def next_whole(self):
        request = self.next()
        self.until(lambda: request.ended)
        return request

    def head(self, request, *fields, status=200, end=False):
        self.frame(http2.HEADERS, http2.END_HEADERS | (http2.END_STREAM if end else 0),
                   request.stream, http2.encode([(":status", str(status)), *fields]))

    def data(self, request, body, end=False):
        self.frame(http2.DATA, http2.END_STREAM if end else 0, request.stream, body)
        request.window -= len(body)
        self.window -= len(body)

    def answer(self, request, body=b"", *fields, status=200):
        self.head(request, *fields, status=status, end=not body)
        if body:
            self.data(request, body, end=True)

    def trailers(self, request, *fields):
        self.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, request.stream,
                   http2.encode(fields))

    def reset(self, request, code):
        self.frame(http2.RST_STREAM, 0, request.stream, struct.pack(">I", code))

    def go_away(self, last, code=0):
        self.frame(http2.GOAWAY, 0, 0, struct.pack(">II", last, code))

    def wait_for_end(self):
        """Reads until the proxy ends the connection."""
        try:
            while True:
                self.read()
        except Gone:
            pass


class Http2Origin:
    """`scripts[i]` is run for connection i, the last one for all behind it."""

    def __init__(self, case, *scripts, settings=(), context=None):
        self.scripts, self.settings, self.context = scripts, settings, context
        self.lock = threading.Lock()
        self.connections = []
        self.requests = []         # on all connections
        self.failures = []
        self.ended = []            # connections whose script has ended
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.sock.getsockname()[1]
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.port}"
        case.addCleanup(self.close, case)
        threading.Thread(target=self._accept, daemon=True).start()

    def note(self, request):
        with self.lock:
            self.requests.append(request)

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        try:
            if self.context is not None:
                sock = self.context.wrap_socket(sock, server_side=True)
            with sock:
                connection = Connection(self, sock, self.settings)
                with self.lock:
                    number = len(self.connections)
                    self.connections.append(connection)
                self.scripts[min(number, len(self.scripts) - 1)](connection)
                with self.lock:
                    self.ended.append(connection)
        except (Gone, OSError):
            pass
        except Exception as error:  # noqa: BLE001: told to the test
            self.failures.append(error)

    def close(self, case):
        self.sock.close()
        for connection in self.connections:
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        case.assertEqual([], self.failures)


def forever(connection, serve):
    """Gives each request to `serve(connection, request)`, as long as the connection lasts."""
    while True:
        serve(connection, connection.next())
