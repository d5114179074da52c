"""wget -r and Python's own client."""

import http.client
import unittest
import urllib.request

from harness import Case, clean_environment, need_program
from nginx import Nginx
from origin import Origin, chunked, fresh, response
from recipes import Mirrored


class Wget(Case):
    def test_a_mirrored_site_comes_from_the_cache_the_third_time(self):
        wget = need_program("wget")
        site = self.directory / "site"
        (site / "sub").mkdir(parents=True)
        pages = {"a.html": "A", "b.html": "B", "sub/c.html": "C", "data.txt": "text " * 9000}
        for name, text in pages.items():
            (site / name).write_text(text)
        (site / "index.html").write_text("".join(f'<a href="{name}">x</a>' for name in pages))
        nginx = Nginx(self, site)
        encore = self.encore()
        origin = Mirrored(nginx, encore)
        for attempt in range(3):
            origin.mark()
            target = self.directory / f"mirror{attempt}"
            self.run_client(
                [wget, "-r", "-nv", "-nH", "--tries=1", "-e", "robots=off", "-P", target,
                 nginx.url("/")],
                env=clean_environment(http_proxy=encore.url))
            for name, text in pages.items():
                self.assertEqual(text, (target / name).read_text())
            asked = origin.all()[origin.begun:]
            self.assertEqual(5 if attempt < 2 else 0, len(asked), asked)


class PythonClient(Case):
    def test_http_client_keeps_one_connection_for_all_methods(self):
        origin = Origin(self, {
            "/page": fresh(b"page"),
            "/chunks": chunked(b"a" * 10000, b"b" * 10000),
            "/echo": lambda x: response(x.request.method.encode() + b" " + x.request.body),
        })
        encore = self.encore()
        connection = http.client.HTTPConnection("127.0.0.1", encore.port, timeout=60)
        self.addCleanup(connection.close)
        connection.connect()
        sock = connection.sock

        def ask(method, path, body=None):
            connection.request(method, origin.url(path), body)
            return connection.getresponse().read()

        for _ in range(3):
            self.assertEqual(b"page", ask("GET", "/page"))
            self.assertEqual(b"", ask("HEAD", "/page"))
            self.assertEqual(b"a" * 10000 + b"b" * 10000, ask("GET", "/chunks"))
            for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                self.assertEqual(method.encode() + b" data", ask(method, "/echo", b"data"))
        self.assertIs(sock, connection.sock, "the connection was not kept")

    def test_urllib_follows_a_redirect_through_the_proxy(self):
        origin = Origin(self, {"/new": fresh(b"moved here")})
        origin.routes["/old"] = response(status="301 Moved Permanently",
                                         Location=origin.url("/new"), Cache_Control="max-age=600")
        encore = self.encore()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": encore.url}))
        for _ in range(3):
            with opener.open(origin.url("/old"), timeout=60) as answer:
                self.assertEqual(b"moved here", answer.read())
        self.assertEqual((2, 2), (origin.count("/old"), origin.count("/new")))


if __name__ == "__main__":
    unittest.main()
