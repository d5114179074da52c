"""A real redis-server for tests, its protocol, and a relay in front of it that can be cut."""

import itertools
import signal
import socket
import threading

from harness import free_port, need_program


class Refused(Exception):
    """The engine's reply was an error."""


class Connection:
    """Commands and replies of RESP2."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.reader = self.sock.makefile("rb")

    def close(self):
        self.reader.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ask(self, *words):
        words = [str(word).encode() if not isinstance(word, bytes) else word for word in words]
        self.sock.sendall(b"*%d\r\n" % len(words)
                          + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self._read()

    def _read(self):
        line = self.reader.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise Refused(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.reader.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return None if rest == b"-1" else [self._read() for _ in range(int(rest))]
        raise AssertionError(f"no reply: {line!r}")


class Engine:
    """redis-server in a directory of its own, on one port from start to start."""

    def __init__(self, case, *options):
        self.case, self.options = case, options
        self.program = need_program("redis-server")
        self.port = free_port()
        self.directory = case.directory / f"redis-{self.port}"
        self.directory.mkdir()
        self.process = None
        self.start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def start(self, *options):
        self.process = self.case.start(
            [self.program, "--port", self.port, "--bind", "127.0.0.1", "--dir", self.directory,
             "--save", "", "--appendonly", "no", *self.options, *options], self.port)

    def stop(self):
        """Kills it: its memory is lost."""
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        self.case.addCleanup(self.thaw)

    def thaw(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)

    def ask(self, *words):
        with Connection(self.port) as connection:
            return connection.ask(*words)


class Listening:
    """In an engine's place: accepts connections, each of which is `accepted`."""

    def __init__(self, case):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        case.addCleanup(self.end)

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def end(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            self.accepted(sock)


class Relay(Listening):
    """Passes connections on to a port, until it is cut: then nothing comes through, either way."""

    def __init__(self, case, port):
        self.target = port
        self.is_cut = threading.Event()
        self.pairs = []
        super().__init__(case)

    def end(self):
        super().end()
        for sock in self.pairs:
            sock.close()

    def cut(self):
        """Like a partition: connections stay open, and their bytes are lost."""
        self.is_cut.set()

    def mend(self):
        """Those that were cut stay dead; new ones pass."""
        lost, self.pairs = self.pairs, []
        self.is_cut.clear()
        for sock in lost:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accepted(self, near):
        try:
            far = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            near.close()
            return
        self.pairs += [near, far]
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source, sink):
        was_cut = False
        while True:
            try:
                data = source.recv(65536)
                was_cut = was_cut or self.is_cut.is_set()
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                if not was_cut:
                    sink.sendall(data)
            except OSError:
                return


class Liar(Listening):
    """Speaks no sense: sends what it is given, one text a connection in turn, for all that it receives."""

    def __init__(self, case, texts):
        self.texts, self.sent = texts, [0] * len(texts)
        self.turns = itertools.cycle(range(len(texts)))
        super().__init__(case)

    def accepted(self, sock):
        threading.Thread(target=self._lie, args=(sock, next(self.turns)), daemon=True).start()

    def _lie(self, sock, number):
        with sock:
            try:
                while sock.recv(65536):
                    sock.sendall(self.texts[number])
                    self.sent[number] += 1
            except OSError:
                return
