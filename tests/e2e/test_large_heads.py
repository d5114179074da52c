"""Large heads: what limits.head lets in is stored, in memory and on disk, and what is larger than the
store takes is passed on and said so."""

import http.client
import json
import unittest

from client import field, get
from harness import SLOWDOWN, Case, eventually
from origin import Origin, fresh, response

KIB = 1024


def line(size, letter="x"):
    return letter * size


class Heads(Case):
    def start_all(self, head="64KiB", disk=False, **sections):
        self.pages, self.asked = {}, {}
        self.origin = Origin(self, default=self.answer)
        self.path = self.directory / "disk"
        if disk:
            sections["disk"] = [{"path": str(self.path), "size": "64MiB", "segment": "1MiB"}]
        self.proxy = self.encore(**{
            "cache": {"memory": "64MiB"}, "admission": {"policy": "always"},
            "limits": {"head": head, **sections.pop("limits", {})}, **sections})

    def answer(self, exchange):
        name = exchange.request.target
        self.asked[name] = self.asked.get(name, 0) + 1
        page = self.pages[name]
        exchange.send(page(exchange.request) if callable(page) else page)

    def get(self, name, **options):
        return get(self.proxy.port, self.origin.url(name), **options)

    def detail(self, name, **options):
        return field(self.get(name, **options), "Cache-Status")

    def counted(self, name):
        return self.proxy.metrics()[f"encore_{name}"]

    def purge(self, query):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port,
                                                timeout=30 * SLOWDOWN)
        connection.request("POST", "/purge", body=query)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        self.assertEqual(200, answer.status, text)
        return json.loads(text)["purged"]

    def restart(self):
        self.proxy.stop()
        self.proxy.start()
        eventually(lambda: self.counted('disk_loading{disk="0"}') == 0, "all is loaded")


class Stored(Heads):
    SIZES = (10 * KIB, 15 * KIB, 16 * KIB, 17 * KIB, 30 * KIB, 63 * KIB)

    def fill(self):
        for size in self.SIZES:
            for body in (b"", b"small", b"b" * 20_000, b"b" * 500_000):
                name = f"/{size}/{len(body)}"
                self.pages[name] = fresh(body, X_Large=line(size), X_Last="yes")
                said = self.detail(name)
                self.assertIn("; stored;", said, name)
                self.check(name)

    def check(self, name):
        size, body = (int(part) for part in name[1:].split("/"))
        answer = self.get(name)
        self.assertIn("; hit", field(answer, "Cache-Status"), name)
        self.assertEqual(("yes", size, body), (field(answer, "X-Last"), len(field(answer, "X-Large")),
                                               len(answer.body)), name)
        self.assertEqual(1, self.asked[name])

    def test_heads_of_any_size_that_is_let_in_are_hits(self):
        self.start_all()
        self.fill()
        for name in self.pages:
            self.check(name)
        self.assertEqual(0, self.counted("large_heads_total"))

    def test_heads_of_any_size_that_is_let_in_are_hits_from_disk(self):
        self.start_all(disk=True)
        self.fill()
        self.restart()
        for name in self.pages:
            self.check(name)
            self.check(name)

    def test_memory_is_given_back(self):
        self.start_all(cache={"memory": "8MiB"})
        for i in range(400):
            self.pages[f"/{i}"] = fresh(b"body", X_Large=line(60 * KIB))
            self.assertEqual(b"body", self.get(f"/{i}").body)
        self.assertIn("; hit", self.detail("/399"))
        self.assertNotIn("; hit", self.detail("/0"))
        self.assertEqual(0, self.counted("memory_failures_total"))


class Tags(Heads):
    def tagged(self, body=b"page"):
        tags = [f"product-{i:05}-of-a-large-shop-{i % 7}" for i in range(2048)]
        self.assertGreater(len(" ".join(tags)), 60_000)
        self.pages["/shop"] = fresh(body, Surrogate_Key=" ".join(tags[:1024]),
                                    Cache_Tag=",".join(tags[1024:]))
        self.assertIn("; stored;", self.detail("/shop"))
        self.assertIn("; hit", self.detail("/shop"))
        return tags

    def test_of_two_thousand_tags_each_purges(self):
        self.start_all("128KiB")
        tags = self.tagged()
        for tag in (tags[0], tags[1023], tags[1024], tags[2047]):
            self.assertIn("; hit", self.detail("/shop"))
            self.assertEqual(1, self.purge(f"tag={tag}"))
            self.assertNotIn("; hit", self.detail("/shop"))
        self.assertEqual(0, self.purge("tag=product"))

    def test_on_disk_too(self):
        self.start_all("128KiB", disk=True)
        tags = self.tagged()
        self.restart()
        self.assertIn("; hit", self.detail("/shop"))
        self.restart()
        self.purge(f"tag={tags[2047]}")
        self.assertNotIn("; hit", self.detail("/shop"))


class Beyond(Heads):
    def test_what_is_beyond_is_said_and_counted(self):
        self.start_all("1MiB")
        self.pages["/large"] = fresh(b"b" * 500_000, X_Large=line(300 * KIB))
        self.pages["/tags"] = fresh(b"b", Surrogate_Key=line(150 * KIB))
        for number, name in enumerate(("/large", "/tags", "/large"), 1):
            answer = self.get(name)
            self.assertEqual(200, answer.status)
            said = field(answer, "Cache-Status")
            self.assertIn("stored=?0; detail=large-head", said)
            self.assertEqual(number, self.counted("large_heads_total"))
        self.proxy.stop()
        logged = [json.loads(each) for each in self.proxy.access_path.read_text().splitlines()]
        self.assertEqual({"large-head"}, {each["detail"] for each in logged})

    def test_a_content_type_far_behind_is_found(self):
        self.start_all("256KiB")
        self.pages["/t"] = fresh(b"body", X_Large=line(90 * KIB), Content_Type="text/x-far")
        self.get("/t")
        self.assertIn("; hit", self.detail("/t"))
        self.proxy.stop()
        logged = [json.loads(each) for each in self.proxy.access_path.read_text().splitlines()]
        self.assertEqual({"text/x-far"}, {each["content_type"] for each in logged})


class Confirmed(Heads):
    """Validations whose 304 makes the head another size."""

    def start_confirming(self, **sections):
        self.start_all("1MiB", **sections)
        self.large = 0

        def page(request):
            if any(name.lower() == "if-none-match" for name, _ in request.fields):
                return response(b"", "304 Not Modified", ETag='"1"', Content_Length=None,
                                Cache_Control="max-age=600", X_Large=line(self.large))
            return fresh(b"page", ETag='"1"', X_Large=line(self.large))
        self.pages["/p"] = page
        self.assertIn("; stored;", self.detail("/p"))

    def confirm(self):
        return self.get("/p", fields=[("Cache-Control", "no-cache")])

    def test_a_larger_head_is_stored(self):
        for disk in (False, True):
            with self.subTest(disk=disk):
                self.start_confirming(disk=disk)
                self.large = 60 * KIB
                self.assertIn("fwd-status=304", field(self.confirm(), "Cache-Status"))
                answer = self.get("/p")
                self.assertIn("; hit", field(answer, "Cache-Status"))
                self.assertEqual((60 * KIB, b"page"), (len(field(answer, "X-Large")), answer.body))
                self.proxy.stop()

    def test_one_that_is_too_large_ends_what_was_stored(self):
        self.start_confirming()
        self.large = 300 * KIB
        answer = self.confirm()
        self.assertEqual((300 * KIB, b"page"), (len(field(answer, "X-Large")), answer.body))
        self.assertEqual(1, self.counted("large_heads_total"))
        self.assertIn("detail=large-head", self.detail("/p"))
        self.large = 20 * KIB
        self.assertIn("; stored;", self.detail("/p"))
        self.assertIn("; hit", self.detail("/p"))


if __name__ == "__main__":
    unittest.main()
