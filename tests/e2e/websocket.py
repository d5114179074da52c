"""WebSocket (RFC 6455) as far as tests need it: the handshake, frames, and an origin that echoes."""

import base64
import hashlib
import os
import socket
import struct
import threading

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE = 1, 2, 8


def accept_key(key):
    return base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()


def handshake_fields(key="dGhlIHNhbXBsZSBub25jZQ=="):
    return [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", key)]


def frame(data, opcode=BINARY, masked=False):
    head = bytes([0x80 | opcode])
    mask_bit = 0x80 if masked else 0
    if len(data) < 126:
        head += bytes([mask_bit | len(data)])
    elif len(data) < 65536:
        head += bytes([mask_bit | 126]) + struct.pack(">H", len(data))
    else:
        head += bytes([mask_bit | 127]) + struct.pack(">Q", len(data))
    if not masked:
        return head + data
    mask = os.urandom(4)
    return head + mask + unmask(data, mask)


def unmask(data, mask):
    if not data:
        return data
    key = int.from_bytes((mask * (len(data) // 4 + 1))[:len(data)], "big")
    return (int.from_bytes(data, "big") ^ key).to_bytes(len(data), "big")


def read_frame(read_exactly):
    """(opcode, data) by a function that reads so many bytes."""
    first, second = read_exactly(2)
    size = second & 0x7f
    if size == 126:
        size, = struct.unpack(">H", read_exactly(2))
    elif size == 127:
        size, = struct.unpack(">Q", read_exactly(8))
    mask = read_exactly(4) if second & 0x80 else b""
    data = read_exactly(size)
    return first & 0x0f, unmask(data, mask) if mask else data


def answer_handshake(exchange):
    """The 101 to a handshake that an Origin's route was given."""
    key = dict(exchange.request.fields)["sec-websocket-key"]
    exchange.send(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                   f"Connection: Upgrade\r\nSec-WebSocket-Accept: {accept_key(key)}\r\n\r\n")
                  .encode())


def exact_reader(sock):
    def read_exactly(count):
        data = bytearray()
        while len(data) < count:
            more = sock.recv(min(count - len(data), 1 << 18))
            if not more:
                raise ConnectionError("the peer has ended")
            data += more
        return bytes(data)
    return read_exactly


def echo(exchange):
    """A route: the handshake, then each message back, until the client says that it closes."""
    answer_handshake(exchange)
    exchange.keep = False
    read = exact_reader(exchange.sock)
    try:
        while True:
            opcode, data = read_frame(read)
            exchange.send(frame(data, opcode))
            if opcode == CLOSE:
                return
    except (OSError, ConnectionError):
        pass


class RawSwitch:
    """A route: switches to `protocol`, then gives the bare socket to `serve(sock)`. Bytes that come
    with the handshake go with it, and so does `with_head` behind the 101."""

    def __init__(self, serve, protocol="raw/1", with_head=b""):
        self.serve, self.protocol, self.with_head = serve, protocol, with_head

    def __call__(self, exchange):
        exchange.keep = False
        exchange.send(f"HTTP/1.1 101 Go\r\nUpgrade: {self.protocol}\r\nConnection: upgrade\r\n\r\n"
                      .encode() + self.with_head)
        self.serve(exchange.sock)


def spawn(function, *arguments):
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def send_all(sock, data):
    """Sends what it can; the peer may have gone."""
    try:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass
