"""Many clients of one server: idle ones, which have made one request, and slow ones, which read a large
response at a kibibyte a second.

  crowd.py PORT HOST IDLE SLOW IDLE_TARGET SLOW_TARGET

Prints "READY" when all are there, and holds them until its standard input ends. Failures go to standard
error.
"""

import contextlib
import select
import socket
import sys
import time

# A slice of the slow clients is read at a time, each of them once a second.
SLICES = 20
READ_BYTES = 1024


def connect(port, receive_buffer=None):
    sock = socket.socket()
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(30)
    sock.connect(("127.0.0.1", port))
    return sock


def read_whole(sock):
    """Reads one small response with Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0])
    while len(body) < length:
        body += sock.recv(65536)


def read_slowly(slow):
    """Until standard input ends. Returns how many the server has cut."""
    gone = set()
    for number in range(1 << 30):
        until = time.monotonic() + 1 / SLICES
        for sock in slow[number % SLICES::SLICES]:
            if sock in gone:
                continue
            with contextlib.suppress(BlockingIOError):
                try:
                    ended = not sock.recv(READ_BYTES)
                except ConnectionError:
                    ended = True
                if ended:
                    gone.add(sock)
        wait = max(0, until - time.monotonic())
        if select.select([sys.stdin], [], [], wait)[0]:
            return len(gone)
    return len(gone)


def main():
    port, idle_count, slow_count = int(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
    host, idle_target, slow_target = sys.argv[2], sys.argv[5], sys.argv[6]
    asked = "GET {} HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
    idle, slow = [], []
    for _ in range(idle_count):
        idle.append(connect(port))
        idle[-1].sendall(asked.format(idle_target).encode())
        read_whole(idle[-1])
    for _ in range(slow_count):
        slow.append(connect(port, 4096))
        slow[-1].sendall(asked.format(slow_target).encode())
        if not slow[-1].recv(READ_BYTES).startswith(b"HTTP/1.1 200 "):
            sys.exit("a slow client is refused")
        slow[-1].setblocking(False)
    print("READY", flush=True)
    gone = read_slowly(slow)
    if gone:
        sys.exit(f"{gone} of {slow_count} slow clients were cut")


if __name__ == "__main__":
    main()
