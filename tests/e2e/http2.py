"""A client of HTTP/2 by hand: frames as the test wants them, header blocks without compression."""

import collections
import socket
import struct

from harness import DEADLINE

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, \
    CONTINUATION = range(10)
END_STREAM = ACK = 1
END_HEADERS = 4
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR = 0, 1, 2
REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 7, 8, 11
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 1, 2, 3, 4

STATIC = """:authority
:method GET
:method POST
:path /
:path /index.html
:scheme http
:scheme https
:status 200
:status 204
:status 206
:status 304
:status 400
:status 404
:status 500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate""".split("\n")

Frame = collections.namedtuple("Frame", "kind flags stream payload")


def _integer(data, at, bits):
    most = (1 << bits) - 1
    value = data[at] & most
    at += 1
    if value < most:
        return value, at
    shift = 0
    while True:
        value += (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def _text(data, at):
    if data[at] & 128:
        raise AssertionError("text in Huffman's code, which the proxy does not write")
    size, at = _integer(data, at, 7)
    return data[at:at + size].decode("latin-1"), at + size


def decode(block):
    """The fields of a block that uses no dynamic table."""
    fields, at = [], 0
    while at < len(block):
        first = block[at]
        if first & 128:
            index, at = _integer(block, at, 7)
            name, _, value = STATIC[index - 1].partition(" ")
        elif first & 64:
            raise AssertionError("a field enters the dynamic table, which the proxy does not use")
        elif first & 32:
            _, at = _integer(block, at, 5)
            continue
        else:
            index, at = _integer(block, at, 4)
            if index:
                name = STATIC[index - 1].partition(" ")[0]
            else:
                name, at = _text(block, at)
            value, at = _text(block, at)
        fields.append((name, value))
    return fields


def _length(size, bits=7):
    most = (1 << bits) - 1
    if size < most:
        return bytes([size])
    out, size = [most], size - most
    while size >= 128:
        out.append(size % 128 + 128)
        size //= 128
    return bytes(out + [size])


def encode(fields):
    out = b""
    for name, value in fields:
        name, value = (x.encode("latin-1") if isinstance(x, str) else x for x in (name, value))
        out += b"\0" + _length(len(name)) + name + _length(len(value)) + value
    return out


class Stream:
    def __init__(self):
        self.interim = []      # fields of each
        self.fields = None     # fields of the response
        self.trailers = None
        self.body = b""
        self.ended = False     # wholly
        self.reset = None      # the code
        self.window = 65535    # to send

    @property
    def status(self):
        return int(self[":status"]) if self.fields else None

    def __getitem__(self, name):
        values = [value for key, value in self.fields or () if key == name]
        return ", ".join(values) if values else None

    @property
    def over(self):
        return self.ended or self.reset is not None


class Http2Client:
    """Sends the given frames; windows are returned immediately unless `window` is None."""

    def __init__(self, port, context=None, name="www.example", settings=(), window="auto",
                 scheme=None, receive_buffer=None, sock=None):
        """`sock` is a connection that is there already, in the place of one to `port`."""
        self.sock = sock or socket.socket()
        self.sock.settimeout(DEADLINE)
        if receive_buffer is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if sock is None:
            self.sock.connect(("127.0.0.1", port))
        self.scheme = scheme or ("http" if context is None else "https")
        if context is not None:
            self.sock = context.wrap_socket(self.sock, server_hostname=name)
        self.authority = name
        self.window = window
        self.streams = {}
        self.frames = []       # all that came
        self.goaways = []      # (last stream, code, reason)
        self.next_id = 1
        self.send_window = 65535
        self.first_window = 65535  # window of streams
        self.acknowledged = 0
        self.ended = False
        self.block = None
        self.sock.sendall(PREFACE)
        self.frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *each) for each in settings))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def go(self):
        """Leaves with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def frame(self, kind, flags, stream, payload=b""):
        self.sock.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
                          + struct.pack(">I", stream) + payload)

    def headers(self, fields, end=True, stream=None):
        if stream is None:
            stream, self.next_id = self.next_id, self.next_id + 2
        if stream not in self.streams:
            self.streams[stream] = Stream()
            self.streams[stream].window = self.first_window
        block = encode(fields)
        pieces = [block[i:i + 16384] for i in range(0, len(block), 16384)] or [b""]
        for i, piece in enumerate(pieces):
            last = i + 1 == len(pieces)
            self.frame(CONTINUATION if i else HEADERS,
                       (END_HEADERS if last else 0) | (END_STREAM if end and not i else 0), stream,
                       piece)
        return stream

    def request(self, path, fields=(), method="GET", end=True, authority=None, scheme=None):
        """Returns the stream's number."""
        return self.headers([(":method", method), (":scheme", scheme or self.scheme),
                             (":authority", authority or self.authority), (":path", path),
                             *fields], end)

    def data(self, stream, content, end=True):
        """Within the windows; what comes meanwhile is read."""
        while True:
            target = self.streams[stream]
            size = min(len(content), self.send_window, target.window, 16384)
            if size > 0 or not content:
                piece, content = content[:size], content[size:]
                self.send_window -= size
                target.window -= size
                self.frame(DATA, END_STREAM if end and not content else 0, stream, piece)
                if not content:
                    return
            elif target.over or not self.read():
                return

    def reset(self, stream, code=CANCEL):
        self.frame(RST_STREAM, 0, stream, struct.pack(">I", code))

    def open_window(self, stream, size):
        self.frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", size))

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            try:
                piece = self.sock.recv(size - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                self.ended = True
                return None
            data += piece
        return data

    def read(self):
        """Reads one frame; None at the end of the connection."""
        head = self._exactly(9)
        if head is None:
            return None
        size = struct.unpack(">I", b"\0" + head[:3])[0]
        payload = self._exactly(size)
        if payload is None:
            return None
        frame = Frame(head[3], head[4], struct.unpack(">I", head[5:])[0] & 0x7fffffff, payload)
        self.frames.append(frame)
        self._take(frame)
        return frame

    def _take(self, frame):
        stream = self.streams.get(frame.stream)
        if frame.kind == SETTINGS:
            if frame.flags & ACK:
                self.acknowledged += 1
                return
            for at in range(0, len(frame.payload), 6):
                setting, value = struct.unpack_from(">HI", frame.payload, at)
                if setting == INITIAL_WINDOW_SIZE:
                    for each in self.streams.values():
                        each.window += value - self.first_window
                    self.first_window = value
            self.frame(SETTINGS, ACK, 0)
        elif frame.kind == PING and not frame.flags & ACK:
            self.on_ping(frame)
        elif frame.kind == GOAWAY:
            last, code = struct.unpack_from(">II", frame.payload)
            self.goaways.append((last, code, frame.payload[8:].decode()))
        elif frame.kind == WINDOW_UPDATE:
            size = struct.unpack(">I", frame.payload)[0]
            if frame.stream == 0:
                self.send_window += size
            elif stream is not None:
                stream.window += size
        elif frame.kind == RST_STREAM and stream is not None:
            stream.reset = struct.unpack(">I", frame.payload)[0]
        elif frame.kind in (HEADERS, CONTINUATION):
            if frame.kind == HEADERS:
                self.block, self.block_flags = b"", frame.flags
            self.block += frame.payload
            if frame.flags & END_HEADERS:
                self._fields(stream, decode(self.block), self.block_flags & END_STREAM)
        elif frame.kind == DATA and stream is not None:
            stream.body += frame.payload
            stream.ended |= bool(frame.flags & END_STREAM)
            if frame.payload and self.window == "auto":
                self.open_window(0, len(frame.payload))
                if not frame.flags & END_STREAM:
                    self.open_window(frame.stream, len(frame.payload))

    @staticmethod
    def _fields(stream, fields, ends):
        if stream.fields is not None:
            stream.trailers = fields
        elif fields[0][1].startswith("1"):
            stream.interim.append(fields)
        else:
            stream.fields = fields
        stream.ended |= bool(ends)

    def on_ping(self, frame):
        self.frame(PING, ACK, 0, frame.payload)

    def read_until(self, condition):
        while not condition():
            if self.read() is None:
                break
        return condition()

    def response(self, stream):
        """The stream once it is over, or its connection."""
        self.read_until(lambda: self.streams[stream].over)
        return self.streams[stream]

    def ask(self, path, fields=(), **options):
        return self.response(self.request(path, fields, **options))

    def at_end(self):
        """Whether the proxy closes the connection, whatever it says before."""
        while self.read() is not None:
            pass
        return True
