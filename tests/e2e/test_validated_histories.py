"""Random histories of responses that must be validated each time: many clients concurrently request
a few URLs, which change by another way meanwhile, and abort, and purge. No response is older than
its request."""

import random
import threading
import time
import unittest

from client import Client, NoResponse, field, get
from harness import Case
from origin import Origin, chunked, response

PATHS = 3
CLIENTS = 10
REQUESTS = 80


class Page:
    """A resource with versions."""

    def __init__(self, number):
        self.number, self.version, self.lock = number, 1, threading.Lock()

    def body(self, version):
        size = (0, 16, 70_000, 400_000)[(self.number + version) % 4]
        return f"{self.number} {version} ".encode().ljust(size, b"%d" % (version % 10))


class Validated(Case):
    def setUp(self):
        super().setUp()
        self.pages = [Page(number) for number in range(PATHS)]
        self.origin = Origin(self, default=self.answer)
        self.calm = False

    def answer(self, exchange):
        page = self.pages[int(exchange.request.target[1:])]
        draw = random.Random(f"{page.number} {self.origin.count()}")
        version = page.version
        time.sleep(draw.random() * 0.02)  # meanwhile others ask, and change it
        tag = f'"{version}"'
        fields = {"ETag": tag, "Cache-Control": "no-cache"}
        if dict(exchange.request.fields).get("if-none-match") == tag:
            return response(status="304 Not Modified", Content_Length=None, **fields)
        body = page.body(version)
        whole = response(body, **fields)
        if draw.random() < 0.4:
            whole = chunked(*(body[at:at + 9000] for at in range(0, len(body), 9000)),
                            trailers=draw.choice(["", "X: 1\r\n", "X-Last: 12345678\r\n"]), **fields)
            whole = whole.replace(b"Cache-Control: max-age=600\r\n", b"")
        cut = draw.randrange(len(whole)) if draw.random() < 0.05 and not self.calm else None
        step = draw.choice([1000, 30_000, 1_000_000])
        for at in range(0, len(whole), step):
            if cut is not None and at + step > cut:
                exchange.send(whole[at:cut])
                exchange.keep = False
                return None
            exchange.send(whole[at:at + step])
        return None

    def check(self, page, since, answer):
        """Whether it is an answer, which is then right, and not older than its request."""
        if answer.status in (502, 504):
            return False
        self.assertIn(answer.status, (200, 304))
        version = int(field(answer, "ETag").strip('"'))
        self.assertGreaterEqual(version, since)
        self.assertLessEqual(version, page.version)
        if answer.status == 200:
            self.assertTrue(page.body(version) == answer.body, (page.number, version))
        return True

    def run_one(self, encore, number):
        draw = random.Random(number)
        seen, good = {}, 0
        for _ in range(REQUESTS):
            page = draw.choice(self.pages)
            url = self.origin.url(f"/{page.number}")
            fields = []
            kind = draw.random()
            if kind < 0.1:
                fields = [("Cache-Control", "no-cache")]
            elif kind < 0.2 and page in seen:
                fields = [("If-None-Match", f'"{seen[page]}"')]
            elif kind < 0.25:
                encore.admin(f"/purge?url={url}", "POST")
            elif kind < 0.4:  # by another way than this proxy
                with page.lock:
                    page.version += 1
            since = page.version
            if kind > 0.92:
                with Client(encore.port) as client:
                    client.request(url)
                    client.reset()
                continue
            try:
                answer = get(encore.port, url, fields=fields)
            except (NoResponse, OSError):
                continue  # the origin has broken off
            if self.check(page, since, answer):
                good += 1
                seen[page] = int(field(answer, "ETag").strip('"'))
        return good

    def test_no_answer_is_older_than_its_request(self):
        encore = self.encore(admission={"policy": "always"}, timeouts={"collapse": "1s"},
                             cache={"memory": "64MiB"})
        failures, good = [], []

        def run(number):
            try:
                good.append(self.run_one(encore, number))
            except BaseException as error:  # noqa: BLE001  it is raised below
                failures.append(error)
        threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        self.assertGreater(sum(good), CLIENTS * REQUESTS / 2)
        self.calm = True
        for page in self.pages:
            self.assertTrue(self.check(page, page.version,
                                       get(encore.port, self.origin.url(f"/{page.number}"))))
        self.assertGreater(encore.outcomes()["revalidated"], 0)


if __name__ == "__main__":
    unittest.main()
