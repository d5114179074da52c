"""Names whose addresses change between check and use, answered by a name server of the test."""

import unittest

from client import Client, get
from harness import Case
from name_server import NameServer
from origin import Origin, fresh


class Rebinding(Case):
    def setUp(self):
        super().setUp()
        self.names = NameServer(self)
        self.inside = Origin(self, default=fresh(b"secret"))
        self.port = self.inside.port

    def proxy(self, **forward):
        return self.encore(upstream={"nameservers": [self.names.address]},
                           forward={"connect_ports": [self.port], **forward},
                           timeouts={"origin_connect": "1s"})

    def connect(self, encore, name):
        with Client(encore.port) as client:
            client.send(f"CONNECT {name}:{self.port} HTTP/1.1\r\nHost: {name}:{self.port}\r\n\r\n")
            return client.read_response("CONNECT").status

    def test_configured_name_servers_are_asked(self):
        encore = self.proxy()
        self.names.answers["inside.test"] = [["127.0.0.1"]]
        self.assertEqual(b"secret", get(encore.port, f"http://inside.test:{self.port}/").body)
        self.assertEqual(["inside.test"], self.names.asked)
        self.assertEqual(502, get(encore.port, f"http://unknown.test:{self.port}/").status)

    def test_private_answers_are_refused_when_never(self):
        encore = self.proxy(private_destinations="never")
        self.names.answers["turn.test"] = [["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"],
                                           ["0.0.0.0"], ["127.0.0.1", "192.168.0.1"]] * 2
        for _ in range(5):
            status = get(encore.port, f"http://turn.test:{self.port}/").status
            self.assertEqual(403, status)
        for _ in range(5):
            self.assertEqual(403, self.connect(encore, "turn.test"))
        self.assertEqual(0, self.inside.connections)

    def test_an_answer_that_changes_is_judged_each_time_it_is_used(self):
        # 127.0.0.2 is allowed and nobody is there; 127.0.0.1 is the proxy itself.
        encore = self.proxy()
        encore_ports = (encore.port, encore.admin_port)
        for port in encore_ports:
            self.names.answers["turn.test"] = [["127.0.0.2"], ["127.0.0.1"], ["127.0.0.2"],
                                               ["127.0.0.2", "127.0.0.1"]]
            said = [get(encore.port, f"http://turn.test:{port}/metrics").status
                    for _ in range(4)]
            self.assertEqual([502, 403, 502, 403], said)

    def test_a_kept_connection_is_judged_again_for_each_client(self):
        encore = self.proxy(private_destinations="loopback-clients")
        self.names.answers["kept.test"] = [["127.0.0.1"]]
        for _ in range(2):
            self.assertEqual(200, get(encore.port, f"http://kept.test:{self.port}/").status)
        encore.sections["forward"] = {"private_destinations": "never"}
        encore.write_config()
        import signal
        from harness import eventually
        encore.signal(signal.SIGHUP)
        eventually(lambda: "reloaded" in encore.output(), "the new config is in force")
        self.assertEqual(403, get(encore.port, f"http://kept.test:{self.port}/new").status)


if __name__ == "__main__":
    unittest.main()
