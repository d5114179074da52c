"""CONNECTs that are decrypted for clients that speak HTTP/2 inside."""

import unittest

from client import Client, field
from harness import free_port, need_program
from http2 import Http2Client
from intercept import HOST, InterceptCase, of_a_machine
from origin import fresh


class InsideHttp2(InterceptCase):
    def proxy(self, *origins, intercept=None, **sections):
        return super().proxy(*origins, intercept={"http2": True, **(intercept or {})}, **sections)

    def test_it_is_not_offered_unless_the_configuration_says_so(self):
        origin = self.start_origin()
        encore = self.proxy(origin, intercept={"http2": False})
        client = self.inside(encore, origin, self.offering("h2", "http/1.1"))
        self.assertEqual("http/1.1", client.sock.selected_alpn_protocol())
        self.assertEqual(b"packages", client.get("/one").body)

    def offering(self, *protocols):
        context = self.trusting()
        context.set_alpn_protocols(protocols)
        return context

    def over_http2(self, encore, origin):
        sock = self.inside(encore, origin, self.offering("h2", "http/1.1")).sock
        self.assertEqual("h2", sock.selected_alpn_protocol())
        return Http2Client(None, name=f"{HOST}:{origin.port}", scheme="https", sock=sock)

    def test_streams_share_what_is_stored_with_http1_and_the_origin_sees_http1(self):
        routes = {f"/{n}": fresh(bytes([65 + n]) * 30_000) for n in range(8)}
        origin = self.start_origin(routes)
        encore = self.proxy(origin)
        for expected in ("uri-miss", "hit"):
            client = self.over_http2(encore, origin)
            streams = [client.request(f"/{n}") for n in range(8)]
            for n, stream in enumerate(streams):
                answer = client.response(stream)
                self.assertEqual((200, bytes([65 + n]) * 30_000),
                                 (answer.status, answer.body))
                self.assertIn(expected, answer["cache-status"])
        self.assertIn("hit", field(self.inside(encore, origin).get("/3"), "Cache-Status"))
        with Client(encore.port) as outside:
            answer = outside.ask(f"https://{HOST}:{origin.port}/4")
            self.assertIn("hit", field(answer, "Cache-Status"))
        self.assertEqual(8, origin.count())

    def test_another_host_than_that_of_the_connect_is_refused_by_itself(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        client = self.over_http2(encore, origin)
        other = client.response(client.request("/", authority=f"a.many.example:{origin.port}"))
        self.assertEqual(421, other.status)
        self.assertEqual(200, client.ask("/").status)
        self.assertEqual(1, origin.count())

    def test_an_upload_passes(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        client = self.over_http2(encore, origin)
        stream = client.request("/up", [("content-length", "300000")], method="POST", end=False)
        client.data(stream, b"u" * 300_000)
        self.assertEqual(200, client.response(stream).status)
        self.assertEqual(b"u" * 300_000, origin.requests[-1].body)

    def test_a_listener_without_http2_gives_http1(self):
        origin = self.start_origin()
        encore = self.proxy(origin, listen=[
            {"address": f"127.0.0.1:{free_port()}", "mode": "forward", "http2": False}])
        client = self.inside(encore, origin, self.offering("h2", "http/1.1"))
        self.assertEqual("http/1.1", client.sock.selected_alpn_protocol())
        self.assertEqual(b"packages", client.get("/").body)

    def test_curl(self):
        curl = need_program("curl")
        origin = self.start_origin({"/file": fresh(b"a file")})
        encore = self.proxy(origin)
        for _ in range(2):
            said = self.run_client(
                [curl, "-sS", "--proxy", encore.url, "--cacert", self.home / "ca.crt",
                 "-w", " %{http_version}", f"https://{HOST}:{origin.port}/file"],
                env=of_a_machine())
            self.assertEqual(b"a file 2", said.stdout)
        self.assertEqual(1, origin.count())


if __name__ == "__main__":
    unittest.main()
