"""A name server under the test's control, over UDP and TCP on one port."""

import socket
import struct
import threading


class NameServer:
    """Answers A questions; each name has a list of answers, the last one stays. Names of zones in
    `silent` are not answered."""

    def __init__(self, case):
        self.answers = {}  # name -> list of lists of IPv4 addresses
        self.asked = []  # names of the A questions
        self.over_tcp = []  # those over TCP
        self.truncated = set()  # names whose UDP answers are cut short
        self.silent = set()
        self.ttl = 0
        self.go_on = threading.Event()  # cleared: nothing is answered
        self.go_on.set()
        self.udp, self.tcp = self._bind()
        self.address = "127.0.0.1:%d" % self.udp.getsockname()[1]
        case.addCleanup(self.udp.close)
        case.addCleanup(self.tcp.close)
        case.addCleanup(self.go_on.set)
        for target in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=target, daemon=True).start()

    @staticmethod
    def _bind():
        while True:
            udp, tcp = (socket.socket(socket.AF_INET, kind)
                        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM))
            udp.bind(("127.0.0.1", 0))
            # Many concurrent questions of a test must not be lost.
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            try:
                tcp.bind(udp.getsockname())
            except OSError:
                udp.close()
                tcp.close()
                continue
            tcp.listen()
            return udp, tcp

    def _serve_udp(self):
        while True:
            try:
                question, peer = self.udp.recvfrom(4096)
                answer = self._answer(question, False)
                if answer:
                    self.udp.sendto(answer, peer)
            except OSError:
                return

    def _serve_tcp(self):
        while True:
            try:
                connection = self.tcp.accept()[0]
            except OSError:
                return
            with connection, connection.makefile("rwb") as stream:
                while size := stream.read(2):
                    answer = self._answer(stream.read(struct.unpack("!H", size)[0]), True)
                    if answer:
                        stream.write(struct.pack("!H", len(answer)) + answer)
                        stream.flush()

    def _answer(self, message, tcp):
        labels, at = [], 12
        while message[at]:
            labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1"))
            at += 1 + message[at]
        name, kind = ".".join(labels).lower(), struct.unpack("!H", message[at + 1:at + 3])[0]
        question = message[12:at + 5]
        if kind == 1:
            (self.over_tcp if tcp else self.asked).append(name)
        self.go_on.wait()
        if any(name == zone or name.endswith("." + zone) for zone in self.silent):
            return None
        if name in self.truncated and not tcp:
            return message[:2] + struct.pack("!HHHHH", 0x8380, 1, 0, 0, 0) + question
        addresses, code = [], 3
        if name in self.answers:
            code = 0
            if kind == 1:
                turns = self.answers[name]
                addresses = turns.pop(0) if len(turns) > 1 else turns[0]
        records = b"".join(
            struct.pack("!HHHIH", 0xC00C, 1, 1, self.ttl, 4) + socket.inet_aton(address)
            for address in addresses)
        return (message[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(addresses), 0, 0)
                + question + records)
