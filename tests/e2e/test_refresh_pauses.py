"""Within stale-while-revalidate, an origin that fails is not asked by each request."""

from client import field, get
from harness import Case, eventually
from origin import Origin, fresh, response

REQUESTS = 60


class RefreshPauses(Case):
    def start_with(self, failing):
        self.failing = True

        def page(exchange):
            if self.origin.count() == 1:
                return fresh(b"page").replace(b"max-age=600",
                                              b"max-age=1, stale-while-revalidate=3600")
            return failing(exchange) if self.failing else fresh(b"new page")
        self.origin = Origin(self, {"/page": page})
        self.proxy = self.encore(admission={"policy": "always"})
        self.url = self.origin.url("/page")
        self.ask()
        eventually(lambda: "; hit" not in (field(self.ask(), "Cache-Status") or "") or
                   self.origin.count() > 1, "it is stale")

    def ask(self):
        return get(self.proxy.port, self.url)

    def check(self, failing):
        self.start_with(failing)
        for _ in range(REQUESTS):
            self.assertEqual(b"page", self.ask().body)
        # At most after 1, 3, 7, 15 and 31 seconds, each with a second try where it was closed.
        self.assertLess(self.origin.count(), REQUESTS // 3)
        self.failing = False
        eventually(lambda: self.ask().body == b"new page", "it is refreshed")

    def test_of_an_origin_that_answers_with_an_error(self):
        self.check(lambda exchange: response(b"no", "503 No"))

    def test_of_one_that_closes(self):
        def close(exchange):
            exchange.close()
        self.check(close)

    def test_of_one_that_says_no_http(self):
        self.check(lambda exchange: b"no\r\n\r\n")
