"""An engine of our own for tests: it keeps one stream and one hash as Redis does, and spoils replies on demand."""

import random
import socket
import threading
import time

from engine import Listening

MARKUP = b"<img src=x onerror=alert(1)>\x1b]0;owned\x07\x1b[31m\r\nSet-Cookie: a=b\r\n"


def bulk(text):
    return b"$%d\r\n%s\r\n" % (len(text), text)


def array(items):
    return b"*%d\r\n" % len(items) + b"".join(items)


def entry(place, fields):
    return array([bulk(b"%d-%d" % place), array([bulk(field) for field in fields])])


def garbage(seed):
    """Bytes that often begin as a reply does."""
    chance = random.Random(seed)
    return lambda reply: [bytes(chance.choice(b"+-:$*\r\n0123456789 \x00\xff") for _ in range(chance.randrange(1, 400)))]


def cut(part):
    """The front of the reply, and the end of the connection."""
    return lambda reply: [reply[:int(len(reply) * part)], None]


SPOILERS = {
    "garbage 1": garbage(1), "garbage 2": garbage(2), "garbage 3": garbage(3),
    "cut at once": cut(0), "cut in the middle": cut(0.5), "cut before the end": cut(0.95),
    "twice": lambda reply: [reply, reply],
    "byte by byte": lambda reply: [reply[i:i + 1] for i in range(len(reply))],
    "nothing": lambda reply: [],
    "nested": lambda reply: [b"*1\r\n" * 50],
    "a list of a million": lambda reply: [b"*1000000\r\n" + b":1\r\n" * 400_000],
    "a text of 40 MB": lambda reply: [bulk(b"x" * 40_000_000)],
    "a line without end": lambda reply: [b"+" + b"x" * 12_000_000],
    "negative": lambda reply: [b"*-7\r\n"], "a number": lambda reply: [b":-9223372036854775808\r\n"],
    "nil": lambda reply: [b"$-1\r\n"], "an empty list": lambda reply: [b"*0\r\n"],
    "moved": lambda reply: [b"-MOVED 7 10.0.0.1:6379\r\n"], "a password": lambda reply: [b"-NOAUTH Authentication required.\r\n"],
    "RESP3": lambda reply: [b"%1\r\n+a\r\n:1\r\n"], "markup": lambda reply: [b"-ERR " + MARKUP[:-2].replace(b"\r\n", b" ") + b"\r\n"],
}


class FalseEngine(Listening):
    """`spoil(command, name)`: the next reply to that command is spoiled once."""

    def __init__(self, case):
        self.lock = threading.Lock()
        self.entries = []  # (ms, sequence), fields
        self.added = 0
        self.nodes = {}
        self.orders = []  # (command, how)
        self.changed = threading.Condition(self.lock)
        self.subscribers = []
        self.socks = []
        super().__init__(case)

    def spoil(self, command, how):
        with self.lock:
            self.orders.append((command, how))

    def drop(self):
        """Ends all connections."""
        with self.lock:
            socks, self.socks = self.socks, []
        for sock in socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def left(self):
        with self.lock:
            return list(self.orders)

    def add(self, fields, place=None):
        """Appends an entry, of any place."""
        with self.changed:
            last = self.entries[-1][0] if self.entries else (0, 0)
            place = place or max((int(time.time() * 1000), 0), (last[0], last[1] + 1))
            self.entries.append((place, [field if isinstance(field, bytes) else str(field).encode() for field in fields]))
            self.added += 1
            self.changed.notify_all()
            return place

    def accepted(self, sock):
        with self.lock:
            self.socks.append(sock)
        threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        reader = sock.makefile("rb")
        queue = None
        try:
            with sock:
                while True:
                    line = reader.readline()
                    if not line:
                        return
                    words = []
                    for _ in range(int(line[1:])):
                        words.append(reader.read(int(reader.readline()[1:]) + 2)[:-2])
                    name = words[0].decode().upper()
                    if name == "MULTI":
                        queue, reply = [], b"+OK\r\n"
                    elif name == "EXEC":
                        reply, queue = array([self._do(each, sock) for each in queue]), None
                    elif queue is not None:
                        queue.append(words)
                        reply = b"+QUEUED\r\n"
                    else:
                        reply = self._do(words, sock)
                    for chunk in self._spoiled(name, reply):
                        if chunk is None:
                            return
                        sock.sendall(chunk)
        except OSError:
            return

    def _spoiled(self, name, reply):
        with self.lock:
            found = next((order for order in self.orders if order[0] == name), None)
            if found is None:
                return [reply]
            self.orders.remove(found)
        return found[1](reply)

    def _do(self, words, sock):
        name = words[0].decode().upper()
        return getattr(self, "_" + name.lower())(words[1:], sock)

    def _ok(self, words, sock):
        return b"+OK\r\n"

    _select = _auth = _ok

    def _time(self, words, sock):
        now = time.time()
        return array([bulk(b"%d" % int(now)), bulk(b"%d" % int(now % 1 * 1e6))])

    def _hlen(self, words, sock):
        return b":%d\r\n" % len(self.nodes)

    def _hgetall(self, words, sock):
        return array([bulk(text) for pair in self.nodes.items() for text in pair])

    def _hset(self, words, sock):
        self.nodes[words[1]] = words[2]
        return b":0\r\n"

    def _hdel(self, words, sock):
        for name in words[1:]:
            self.nodes.pop(name, None)
        return b":0\r\n"

    def _exists(self, words, sock):
        return b":%d\r\n" % bool(self.entries or self.added)

    def _xinfo(self, words, sock):
        last = self.entries[-1][0] if self.entries else (0, 0)
        return array([bulk(b"length"), b":%d\r\n" % len(self.entries), bulk(b"last-generated-id"), bulk(b"%d-%d" % last),
                      bulk(b"entries-added"), b":%d\r\n" % self.added])

    def _xrange(self, words, sock):
        place = tuple(int(part) for part in words[1].split(b"-"))
        return array([entry(*each) for each in self.entries if each[0] == place])

    def _xread(self, words, sock):
        words = [word.upper() for word in words[:-2]] + words[-2:]
        count = int(words[words.index(b"COUNT") + 1])
        after = tuple(int(part) for part in words[-1].split(b"-"))
        end = time.monotonic() + (int(words[words.index(b"BLOCK") + 1]) / 1000 if b"BLOCK" in words else 0)
        with self.changed:
            while True:
                some = [each for each in self.entries if each[0] > after][:count]
                left = end - time.monotonic()
                if some or left <= 0:
                    break
                self.changed.wait(left)
        return array([array([bulk(words[-2]), array([entry(*each) for each in some])])]) if some else b"*-1\r\n"

    def _xadd(self, words, sock):
        fields = words[words.index(b"*") + 1:]
        return bulk(b"%d-%d" % self.add(fields))

    def _subscribe(self, words, sock):
        self.subscribers.append(sock)
        return array([bulk(b"subscribe"), bulk(words[0]), b":1\r\n"])

    def _publish(self, words, sock):
        self.tell(words[1])
        return b":0\r\n"

    def tell(self, text, channel=b"encore:purges:confirmed"):
        for each in self.subscribers:
            try:
                each.sendall(array([bulk(b"message"), bulk(channel), bulk(text)]))
            except OSError:
                pass

    def _ping(self, words, sock):
        return array([bulk(b"pong"), bulk(b"")])
