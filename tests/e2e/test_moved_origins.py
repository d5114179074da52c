"""Kept connections to an origin whose name has turned to another address, and old ones: the
responding server shows where each request goes."""

import unittest

from client import get
from harness import Case, eventually, free_port
from name_server import NameServer
from origin import Origin, response


class Moved(Case):
    """The same port at two addresses, of which a name has one."""

    def start_all(self, ttl=0, mode="reverse", timeouts=None, **upstream):
        self.names = NameServer(self)
        self.names.ttl = ttl
        # A port that the system gave would be free at one of the two addresses alone.
        self.old = Origin(self, port=free_port(), default=response(b"old"))
        self.new = Origin(self, host="127.0.0.2", port=self.old.port, default=response(b"new"))
        self.names.answers["moving.test"] = [["127.0.0.1"]]
        self.url = f"http://moving.test:{self.old.port}/"
        sections = {}
        if mode == "reverse":
            sections = {"listen": [{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
                        "origin": [{"servers": [self.url.rstrip("/")]}]}
        # One worker: each has connections of its own.
        self.proxy = self.encore(
            workers={"count": 1}, timeouts={"pool_idle": "1h", **(timeouts or {})},
            upstream={"nameservers": [self.names.address], **upstream}, **sections)

    def get(self):
        return get(self.proxy.port, self.url).body

    def move(self):
        self.names.answers["moving.test"] = [["127.0.0.2"]]

    def test_a_name_that_turned_is_followed_though_its_old_server_answers(self):
        for mode in ("reverse", "forward"):
            with self.subTest(mode):
                self.start_all(ttl=1, mode=mode)
                self.assertEqual(b"old", self.get())
                self.move()
                # Each of these requests would keep the old connection in use.
                eventually(lambda: self.get() == b"new", "the new server is asked")
                seen = self.old.count()
                for _ in range(5):
                    self.assertEqual(b"new", self.get())
                self.assertEqual(seen, self.old.count())
                self.assertEqual(1, self.old.connections)

    def test_without_a_lifetime_the_next_request_follows(self):
        self.start_all(ttl=0)
        for _ in range(3):
            self.assertEqual(b"old", self.get())
        self.assertEqual(1, self.old.connections)
        self.move()
        for _ in range(3):
            self.assertEqual(b"new", self.get())
        self.assertEqual(1, self.new.connections)

    def test_the_bounds_of_lifetimes_hold(self):
        self.start_all(ttl=3600, dns_ttl_max="0s")
        self.assertEqual(b"old", self.get())
        self.move()
        self.assertEqual(b"new", self.get())
        self.start_all(ttl=0, dns_ttl_min="1h")
        self.assertEqual(b"old", self.get())
        self.move()
        for _ in range(5):
            self.assertEqual(b"old", self.get())
        self.assertEqual(["moving.test"], self.names.asked)

    def test_of_several_addresses_a_kept_connection_to_one_that_is_left_is_used(self):
        self.start_all(ttl=0)
        self.assertEqual(b"old", self.get())
        self.names.answers["moving.test"] = [["127.0.0.2", "127.0.0.1"]]
        for _ in range(3):
            self.assertEqual(b"old", self.get())
        self.assertEqual(1, self.old.connections)
        self.assertEqual(0, self.new.connections)

    def test_kept_connections_outlive_name_servers_that_do_not_answer(self):
        self.start_all(ttl=0)
        self.assertEqual(b"old", self.get())
        self.names.silent.add("moving.test")
        for _ in range(3):
            self.assertEqual(b"old", self.get())
        self.assertEqual(1, self.old.connections)

    def test_a_name_that_is_gone_has_no_connection(self):
        self.start_all(ttl=0)
        self.assertEqual(b"old", self.get())
        del self.names.answers["moving.test"]
        self.assertEqual(502, get(self.proxy.port, self.url).status)
        self.assertEqual(1, self.old.count())

    def test_where_the_old_connection_takes_the_servers_last_place_it_gives_way(self):
        self.start_all(ttl=0, connections_per_server=1)
        self.assertEqual(b"old", self.get())
        self.move()
        self.assertEqual(b"new", self.get())

    def test_an_old_connection_carries_no_new_request(self):
        self.start_all(ttl=3600, timeouts={"pool_age": "1ms"})
        for number in range(1, 4):
            self.assertEqual(b"old", self.get())
            eventually(lambda: self.proxy.metrics()["encore_origin_connections"] == 0,
                       "its age is over")
            self.assertEqual(number, self.old.connections)

    def test_a_connection_is_kept_for_an_hour_by_default(self):
        self.start_all(ttl=3600)
        for _ in range(5):
            self.assertEqual(b"old", self.get())
        self.assertEqual(1, self.old.connections)
        dumped = self.run_client([self.proxy.program, "--dump-config", "--config",
                                  self.proxy.config_path]).stdout.decode()
        self.assertRegex(dumped, r'(?m)^pool_age = "1h"')


if __name__ == "__main__":
    unittest.main()
