"""Filters as web resources: what is published of which change, on which listener, and what a
client that polls many URLs saves by it."""

import gzip
import hashlib
import http.client
import json
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

from client import Client, field
from encore_filter import EncoreFilter
from harness import Case, clean_environment, eventually, free_port
from origin import Origin, response

HOUR = "%Y/%m/%d/%H"


class Hour:
    """A client's use of an hour's filter in JSON: SHA-1 is enough."""

    def __init__(self, text):
        self.facts = json.loads(text)
        self.bits = int(self.facts["filter"].rstrip("L"), 16)

    def __contains__(self, url):
        digest = hashlib.sha1(url.encode()).hexdigest()
        return all(self.bits >> int(digest[5 * i:5 * i + 5], 16) % self.facts["m"] & 1
                   for i in range(self.facts["k"]))


class Site:
    """Pages with entity tags, which a PUT or the site itself changes."""

    def __init__(self, pages):
        self.versions = {f"/page/{i}": 1 for i in range(pages)}

    def __call__(self, exchange):
        request = exchange.request
        named = dict(request.fields)
        if request.method == "PUT":
            self.versions[request.target] += 1
            return response(status="204 No Content", Content_Length=None)
        version = self.versions.get(request.target)
        if version is None:
            return response(status="404 Not Found")
        etag = f'"{version}"'
        if named.get("if-none-match") == etag:
            return response(status="304 Not Modified", Content_Length=None, ETag=etag)
        return response(f"version {version}", Cache_Control="max-age=600", ETag=etag)


class FiltersCase(Case):
    def start_all(self, pages=10, state=None, **filters):
        self.site = Site(pages)
        self.origin = Origin(self, {}, default=self.site)
        self.reverse, self.forward = free_port(), free_port()
        self.settings = {
            "listen": [{"address": f"127.0.0.1:{self.forward}", "mode": "forward"},
                       {"address": f"127.0.0.1:{self.reverse}", "mode": "reverse"}],
            "origin": [{"servers": [self.origin.url("")]}],
            "admission": {"policy": "always"},
            "filters": {"publish": ["changed"], "path": "/filters", "hash": "sha1-fields20",
                        **filters}}
        if state:
            self.settings["state"] = {"directory": state}
        self.proxy = self.encore(**self.settings)

    def ask(self, path, method="GET", port=None, body=None, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.reverse, timeout=60)
        connection.request(method, path, body=body, headers={
            "Host": "site.example",
            **{name.replace("_", "-"): value for name, value in fields.items()}})
        answer = connection.getresponse()
        answer.content = answer.read()
        connection.close()
        return answer

    def admin(self, path, method="GET", **fields):
        return self.ask(path, method, self.proxy.admin_port, Host="localhost", **fields)

    def hours(self, since=None):
        """The filters of all hours from `since` to now."""
        first = int((since or time.time()) // 3600)
        wanted = [time.strftime(HOUR, time.gmtime(3600 * hour))
                  for hour in range(first, int(time.time() // 3600) + 1)]
        answers = [self.ask(f"/filters/changed/{hour}.json") for hour in wanted]
        self.assertEqual([200] * len(answers), [a.status for a in answers])
        return [Hour(answer.content) for answer in answers]

    def is_changed(self, url, since):
        return any(url in hour for hour in self.hours(since))


class Changes(FiltersCase):
    def test_what_changes_is_in_the_filter_and_nothing_else(self):
        began = time.time()
        self.start_all()
        for i in range(8):
            self.ask(f"/page/{i}")
        url = "http://site.example/page/{}".format
        self.ask("/page/1", "PUT", body=b"x")
        self.ask("/purge?url=http://site.example/page/2", "POST", self.proxy.admin_port,
                 Host="localhost")
        self.ask("/purge?soft=1&prefix=http://site.example/page/3", "POST", self.proxy.admin_port,
                 Host="localhost")
        self.site.versions["/page/4"] += 1
        self.ask("/page/4", Cache_Control="no-cache")
        self.ask("/page/5", Cache_Control="no-cache")
        changed = [i for i in range(8) if self.is_changed(url(i), began)]
        self.assertEqual([1, 2, 3, 4], changed)

    def test_a_digest_of_an_hour_claims_what_has_changed(self):
        encore_filter = EncoreFilter(self)
        self.start_all(capacity=1000)
        began = time.time()
        for i in range(3):
            self.ask(f"/page/{i}", "PUT", body=b"x")
        claimed = set()
        for hour in {time.gmtime(began)[:4], time.gmtime()[:4]}:
            path = "/filters/changed/{:04}/{:02}/{:02}/{:02}.digest".format(*hour)
            encore_filter.run("fetch", f"http://127.0.0.1:{self.reverse}{path}", "-o", "digest")
            self.assertIn("squid-md5", encore_filter.run("info", "digest"))
            ended = encore_filter.ended("test", "digest", keys=[
                f"http://site.example/page/{i}" for i in range(10)])
            claimed.update(ended.stdout.decode().split())
        self.assertEqual({f"http://site.example/page/{i}" for i in range(3)}, claimed)

    def test_a_forward_proxys_urls_are_those_that_its_clients_name(self):
        began = time.time()
        self.start_all()
        with Client(self.forward) as client:
            client.ask(self.origin.url("/page/1"), "PUT", body=b"x")
        self.assertTrue(self.is_changed(self.origin.url("/page/1"), began))
        self.assertFalse(self.is_changed(self.origin.url("/page/2"), began))

    def test_hours_survive_a_restart(self):
        began = time.time()
        self.start_all(state=str(self.directory / "state"))
        self.ask("/page/1", "PUT", body=b"x")
        self.proxy.stop()
        self.proxy.start()
        self.assertTrue(self.is_changed("http://site.example/page/1", began))
        self.assertFalse(self.is_changed("http://site.example/page/2", began))
        # Nobody watched while it was down.
        self.assertFalse(self.hours()[-1].facts["complete"])

    def test_damaged_hours_are_reported_and_left_behind(self):
        self.start_all(state=str(self.directory / "state"))
        self.proxy.stop()
        (self.directory / "state" / "changed").write_bytes(b"ENCHOURS nonsense")
        self.proxy.start()
        eventually(lambda: "saved hours refused" in self.proxy.output(), "the fault is reported")
        self.assertEqual(200, self.admin("/filters/links").status)


class Resource(FiltersCase):
    def test_the_same_is_served_on_every_listener(self):
        self.start_all()
        now = time.time()
        self.ask("/page/1", "PUT", body=b"x")
        path = f"/filters/changed/{time.strftime(HOUR, time.gmtime(now))}.enc"
        answers = [self.admin(path), self.ask(path),
                   self.ask(path, port=self.forward, Host=f"127.0.0.1:{self.forward}")]
        for answer in answers:
            self.assertEqual(200, answer.status)
            self.assertEqual(answers[0].content, answer.content)
            self.assertEqual(answers[0].getheader("ETag"),
                             answer.getheader("ETag"))
            self.assertEqual("application/vnd.encore.filter", answer.getheader("Content-Type"))
        eventually(lambda: self.proxy.outcomes().get("published") == 2, "both are counted")

    def test_conditions_ranges_codings_and_forms(self):
        self.start_all()
        path = f"/filters/changed/{time.strftime(HOUR, time.gmtime())}"
        for ask in (self.admin, self.ask):
            whole = ask(path + ".json")
            hour = Hour(whole.content)
            self.assertEqual(("sha1-fields20", 10000), (hour.facts["hash"], hour.facts["capacity"]))
            etag = whole.getheader("ETag")
            same = ask(path + ".json", If_None_Match=etag)
            self.assertEqual((304, b""), (same.status, same.content))
            self.assertEqual(etag, same.getheader("ETag"))
            part = ask(path + ".json", Range="bytes=0-9")
            self.assertEqual((206, whole.content[:10]), (part.status, part.content))
            self.assertEqual(f"bytes 0-9/{len(whole.content)}", part.getheader("Content-Range"))
            zipped = ask(path + ".json", Accept_Encoding="gzip")
            self.assertEqual("gzip", zipped.getheader("Content-Encoding"))
            self.assertEqual(whole.content, gzip.decompress(zipped.content))
            self.assertNotEqual(etag, zipped.getheader("ETag"))
            self.assertEqual("zstd", ask(path, Accept_Encoding="gzip;q=0.5, zstd")
                             .getheader("Content-Encoding"))
            self.assertEqual(whole.content, ask(path, Accept="application/json").content)
            head = ask(path + ".json", "HEAD")
            self.assertEqual((b"", str(len(whole.content))),
                             (head.content, head.getheader("Content-Length")))
            self.assertEqual(406, ask(path, Accept="image/png").status)
            self.assertEqual(405, ask(path, "DELETE").status)
            self.assertEqual(404, ask("/filters/changed/2001/01/01/00").status)
            self.assertIn(path, ask("/filters/links").content.decode())

    def test_others_are_refused_on_proxy_listeners(self):
        self.start_all(allow_clients=["192.0.2.0/24"])
        refused = self.ask("/filters/links")
        # Other clients of a cache in front of it may be allowed.
        self.assertEqual((403, "no-store"), (refused.status, refused.getheader("Cache-Control")))
        self.assertEqual(403, self.ask("/filters/links", port=self.forward,
                                       Host=f"127.0.0.1:{self.forward}").status)
        self.assertEqual(200, self.admin("/filters/links").status)
        self.assertEqual(0, self.origin.count())

    def test_a_forward_listener_answers_for_itself_alone(self):
        self.start_all(publish=["changed", "resident"], squid_digest=True)
        self.proxy.stop()
        self.settings["admin"] = {"allow_hosts": ["proxy.example"]}
        self.proxy = self.encore(**self.settings)
        squid = "/squid-internal-periodic/store_digest"
        own = [f"127.0.0.1:{self.forward}", f"localhost:{self.forward}",
               f"[::ffff:127.0.0.1]:{self.forward}", f"Proxy.Example:{self.forward}"]
        strangers = ["site.example", f"site.example:{self.forward}", "127.0.0.1",
                     f"127.0.0.2:{self.forward}", self.origin.authority]
        for path in ("/filters/links", squid):
            for host in own:
                self.assertEqual(200, self.ask(path, port=self.forward, Host=host).status, host)
                self.assertEqual(200, self.ask(f"http://{host}{path}", port=self.forward).status)
            for host in strangers:
                self.assertEqual(400, self.ask(path, port=self.forward, Host=host).status, host)
            self.assertEqual(0, self.origin.count(path))
            # Other paths go to the origin.
            self.assertEqual(404, self.ask(self.origin.url(path), port=self.forward).status)
            self.assertEqual(1, self.origin.count(path))

    def test_where_nothing_is_published_the_origin_is_asked(self):
        self.site = Site(1)
        self.origin = Origin(self, {}, default=self.site)
        self.reverse = free_port()
        self.proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{self.reverse}", "mode": "reverse"}],
            origin=[{"servers": [self.origin.url("")]}])
        self.assertEqual(404, self.ask("/filters/links").status)
        self.assertEqual(1, self.origin.count("/filters/links"))
        self.assertEqual(404, self.admin("/filters/links").status)

    def test_what_is_published_is_not_keyed_with_the_admission_seed(self):
        seed = "00112233445566778899aabbccddeeff"
        seeds = [bytes.fromhex(seed), bytes.fromhex(seed)[::-1],
                 bytes.fromhex(seed)[7::-1] + bytes.fromhex(seed)[:7:-1], seed.encode()]
        contents = []
        for admission in ({"seed": seed}, {"seed": "1"}):
            self.start_all(hash="xxh3")
            self.proxy.stop()
            self.proxy = self.encore(**{**self.settings, "admission": admission})
            self.ask("/page/1", "PUT", body=b"x")
            now = time.strftime(HOUR, time.gmtime())
            contents.append([self.ask(f"/filters/changed/{now}{suffix}").content
                             for suffix in (".enc", ".json")])
        # With another seed the bits are the same, and it stands nowhere.
        self.assertEqual(contents[0], contents[1])
        for content in contents[0]:
            self.assertFalse([s for s in seeds if s in content])

    def test_a_reload_moves_the_path(self):
        self.start_all()
        self.proxy.sections["filters"]["path"] = "/elsewhere"
        self.proxy.write_config()
        self.proxy.signal(signal.SIGHUP)
        eventually(lambda: self.ask("/elsewhere/links").status == 200, "the path is new")
        # Each worker takes the new settings over in its own time.
        eventually(lambda: self.ask("/filters/links").status == 404, "the old one has gone")


class Resident(FiltersCase):
    """The cache's contents: updated as objects come and go."""

    def resident(self):
        # It is made once a second at most.
        return Hour(self.admin("/filters/resident.json").content)

    def eventually_holds(self, pages):
        def holds():
            filter_now = self.resident()
            return filter_now.facts["stored"] == len(pages) and all(
                f"http://site.example/page/{i}" in filter_now for i in pages)
        eventually(holds, f"{len(pages)} are resident")
        now = self.resident()
        others = [i for i in range(200, 1200) if f"http://site.example/page/{i}" in now]
        self.assertLess(len(others), 30)  # 1 % where it is full

    def test_what_is_stored_replaced_purged_and_evicted(self):
        self.start_all(200, publish=["resident"], resident_capacity=1000)
        self.eventually_holds([])
        for i in range(100):
            self.ask(f"/page/{i}")
        self.eventually_holds(range(100))
        for i in range(50):
            self.site.versions[f"/page/{i}"] += i % 2
            self.ask(f"/page/{i}", Cache_Control="no-cache")  # replaced, or freshened
        self.eventually_holds(range(100))
        self.ask("/purge?" + "&".join(f"url=http://site.example/page/{i}" for i in range(20)),
                 "POST", self.proxy.admin_port, Host="localhost")
        for i in range(20, 30):
            self.ask(f"/page/{i}", "PUT", body=b"x")
        self.eventually_holds(range(30, 100))
        self.ask("/purge?prefix=http://site.example/page/", "POST", self.proxy.admin_port,
                 Host="localhost")
        self.eventually_holds([])
        self.assertEqual({"0"}, {digit for digit in self.resident().facts["filter"][2:-1]})

    def test_eviction_takes_out_what_has_gone(self):
        self.start_all(1, publish=["resident"])
        self.proxy.stop()
        big = response("x" * 100_000, Cache_Control="max-age=600")
        origin = Origin(self, {}, default=big)
        self.proxy = self.encore(**{
            **self.settings, "origin": [{"servers": [origin.url("")]}],
            "cache": {"memory": "4MiB", "shards": 1}})
        for i in range(200):
            self.ask(f"/big/{i}")

        def agrees():
            stored, now = self.proxy.stats()["cache"]["objects"], self.resident()
            held = [i for i in range(200) if f"http://site.example/big/{i}" in now]
            return 0 < len(held) < 60 and 199 in held and now.facts["stored"] == stored
        eventually(agrees, "what is evicted has gone")


class Poller(FiltersCase):
    """A client that wants to know what has changed among thousands of URLs."""

    def poll(self, paths):
        """Fetches each on one connection; {path: body}."""
        connection = http.client.HTTPConnection("127.0.0.1", self.reverse, timeout=60)
        bodies = {}
        for path in paths:
            connection.request("GET", path, headers={"Host": "site.example"})
            bodies[path] = connection.getresponse().read()
        connection.close()
        return bodies

    def test_a_poller_of_5000_urls_fetches_only_what_changed(self):
        pages = 5000
        self.start_all(pages)
        began = time.time()
        paths = list(self.site.versions)
        known = self.poll(paths)
        # An hour of a site's life: authors write through the proxy, what the site has changed is
        # purged, and readers who insist find what is new.
        written, purged, insisted = paths[100:140], paths[2000:2030], paths[4000:4010]
        for path in written:
            self.ask(path, "PUT", body=b"x")
        for path in purged + insisted:
            self.site.versions[path] += 1
        self.ask("/purge", "POST", self.proxy.admin_port, Host="localhost",
                 body="&".join(f"url=http://site.example{path}" for path in purged))
        for path in insisted:
            self.ask(path, Cache_Control="no-cache")
        # The poller comes again: a small resource or two, and then only what it names.
        hours = self.hours(began)
        maybe = [p for p in paths if any("http://site.example" + p in hour for hour in hours)]
        fresh = self.poll(maybe)
        changed = {path for path, body in fresh.items() if body != known[path]}
        self.assertEqual(set(written + purged + insisted), changed)
        known.update(fresh)
        self.assertEqual({path: f"version {version}".encode()
                          for path, version in self.site.versions.items()}, known)
        asked = len(hours) + len(maybe)
        rate = max(hour.facts["fpr_now"] for hour in hours)
        print(f"\npoller: {pages} URLs, {len(changed)} changed; {asked} requests instead of "
              f"{pages}, {pages - asked} saved ({100 * (pages - asked) / pages:.1f} %); "
              f"{len(maybe) - len(changed)} in vain, expected {rate * pages:.2g}")
        self.assertLess(asked, pages / 20)


class Documented(FiltersCase):
    def test_the_figures_of_the_document_are_those_of_the_program(self):
        """The output of curl there, except the time."""
        document = (pathlib.Path(__file__).parents[2] / "docs" / "FILTERS.md").read_text()
        self.start_all(pages=20)
        for i in range(20):
            self.ask(f"/page/{i}")
        self.ask("/page/3", "PUT", body=b"x")
        self.ask("/page/14", "PUT", body=b"x")
        hour = time.strftime(HOUR, time.gmtime())
        answer = self.ask(f"/filters/changed/{hour}")
        if answer.headers["Encore-Filter"].count("events=2") == 0:
            self.skipTest("the hour ended meanwhile")
        for name in ("ETag", "Encore-Filter", "Content-Length", "Content-Type", "Vary"):
            self.assertIn(f"\n{name}: {answer.headers[name]}\n", document)
        shown = re.search(r'^\{"resource": "changed", .*$', document, re.M).group()
        printed = self.ask(f"/filters/changed/{hour}.json").content.decode()
        self.assertEqual(re.sub(r"\d{4}/\d\d/\d\d/\d\d", hour, shown), printed[:len(shown)])

    def test_the_script_of_the_document_finds_what_has_changed(self):
        document = pathlib.Path(__file__).parents[2] / "docs" / "FILTERS.md"
        script = document.read_text().split("```python\n")[1].split("```")[0]
        (self.directory / "changed.py").write_text(script)
        began = time.time()
        self.start_all()
        self.ask("/page/3", "PUT", body=b"x")
        urls = [f"http://site.example/page/{i}" for i in range(10)]
        found = set()
        for hour in {time.gmtime(began)[:4], time.gmtime()[:4]}:
            path = "/filters/changed/{:04}/{:02}/{:02}/{:02}.json".format(*hour)
            ended = subprocess.run(
                [sys.executable, "changed.py", f"http://127.0.0.1:{self.reverse}{path}"],
                input="\n".join(urls), capture_output=True, text=True, cwd=self.directory,
                env=clean_environment(), check=True, timeout=60)
            found.update(ended.stdout.split())
        self.assertEqual({urls[3]}, found)


if __name__ == "__main__":
    unittest.main()
