"""`encore explain URL` and /api/explain of a running proxy: the stored variants of a key, the
filter's knowledge, the present and the latest outcomes; and that the question changes none of
it."""

import base64
import hashlib
import http.client
import json
import signal
import subprocess
import threading
import unittest
import urllib.parse

from client import Client, field, get
from harness import Case, clean_environment, eventually, free_port
from origin import Origin, fresh, response

KIB = 1024


def by_encoding(exchange):
    coding = dict(exchange.request.fields).get("accept-encoding", "")
    exchange.send(fresh(b"c" * 900, 600, Vary="Accept-Encoding", ETag=f'"{coding}"'))


class Explained(Case):
    def api(self, proxy, url, status=200, **more):
        query = urllib.parse.urlencode({"url": url, **more}, doseq=True)
        got, text = proxy.admin("/api/explain?" + query)
        self.assertEqual(status, got, text)
        return json.loads(text) if status == 200 else text

    def cli(self, proxy, *arguments, status=0):
        ended = subprocess.run([proxy.program, "--config", proxy.config_path, "explain",
                                *arguments], text=True, capture_output=True, timeout=120,
                               env=clean_environment())
        self.assertEqual(status, ended.returncode, ended.stderr)
        return ended.stdout, ended.stderr

    def lately(self, proxy, url, outcome):
        """Returns the record of a request, which may come after its response."""
        def noted():
            found = [each for each in self.api(proxy, url)["lately"] if each["outcome"] == outcome]
            return found and found[0]
        return eventually(noted, f"{outcome} of {url} is noted")


class Live(Explained):
    def test_each_step_of_a_second_hit_is_foreseen_and_asking_is_none(self):
        origin = Origin(self, {"/a": fresh(b"a" * 2000, 600, ETag='"1"')})
        proxy = self.encore(cache={"shards": 1})
        url = origin.url("/a")

        def many():
            for _ in range(5):
                explained = self.api(proxy, url)
            return explained

        said = many()
        self.assertEqual([], said["stored"])
        self.assertEqual({"policy": "second-hit", "by": "filter", "requests": 0, "stored_at": 2,
                          "generation": "new"}, said["remembered"])
        self.assertEqual("miss", said["now"]["kind"])
        self.assertIn("not stored yet, but remembered", said["now"]["text"])
        self.assertEqual([], said["lately"])
        self.assertIn("first-request", field(get(proxy.port, url), "Cache-Status"))

        said = many()
        self.assertEqual((1, "current"),
                         (said["remembered"]["requests"], said["remembered"]["generation"]))
        self.assertIn("; a storable response is stored", said["now"]["text"])
        self.assertIn("second-request", field(get(proxy.port, url), "Cache-Status"))

        eventually(lambda: self.api(proxy, url)["stored"], "it is stored")
        said = many()
        variant, = said["stored"]
        self.assertEqual(("memory", True, 200, 2000, "max-age (RFC 9111 5.2.2.1)"),
                         tuple(variant[key] for key in ("where", "selected", "status",
                                                        "body_bytes", "storable")))
        self.assertGreater(variant["charge_bytes"], 2000)
        self.assertIn(variant["fresh_seconds"], range(500, 601))
        self.assertGreater(variant["kept_seconds"], variant["fresh_seconds"])
        self.assertEqual("hit", said["now"]["kind"])
        self.assertIn("; hit", field(get(proxy.port, url), "Cache-Status"))
        self.assertEqual(2, origin.count("/a"))
        # Each worker tells its own in its time.
        eventually(lambda: ["second-request", "first-request"]
                   == [each["outcome"] for each in self.api(proxy, url)["lately"]],
                   "both are told")

    def test_nothing_that_is_counted_changes(self):
        origin = Origin(self, {"/a": fresh(b"a", 600)})
        proxy = self.encore(admission={"policy": "always"})
        get(proxy.port, origin.url("/a"))
        eventually(lambda: proxy.stats()["cache"]["objects"] == 1, "it is stored")

        def counted():
            stats = proxy.stats()
            return {key: stats[key] for key in ("requests", "cache", "admission")}
        eventually(lambda: sum(proxy.outcomes().values()) == 1, "it is recorded")
        before = counted()
        for path in ("/a", "/b", "/c?d=e"):
            self.api(proxy, origin.url(path))
            self.cli(proxy, origin.url(path))
        self.assertEqual(before, counted())
        self.assertEqual(1, origin.count())

    def test_variants_are_told_apart(self):
        origin = Origin(self, {"/v": by_encoding})
        proxy = self.encore(admission={"policy": "always"})
        url = origin.url("/v")
        for coding in ("gzip", "br"):
            get(proxy.port, url, fields=[("Accept-Encoding", coding)])
        eventually(lambda: len(self.api(proxy, url)["stored"]) == 2, "both are stored")
        for coding, kind in (("gzip", "hit"), ("br", "hit"), ("zstd", "miss")):
            with self.subTest(coding):
                said = self.api(proxy, url, header=f"Accept-Encoding: {coding}")
                self.assertEqual(kind, said["now"]["kind"])
                chosen = [each["varies_by"] for each in said["stored"] if each["selected"]]
                self.assertEqual(1 if kind == "hit" else 0, len(chosen))
                if chosen:
                    self.assertIn(coding, chosen[0])
                for each in said["stored"]:
                    self.assertEqual(not each["selected"], each.get("barred") == "another variant")
        self.assertIn("no variant matches",
                      self.api(proxy, url, header="Accept-Encoding: zstd")["now"]["text"])
        text, _ = self.cli(proxy, url, "--field", "Accept-Encoding: br")
        self.assertRegex(text, r"(?m)^ *(stored)? *\* in memory, 200, 900B of body")
        self.assertRegex(text, r"(?m)^ *(stored)? *- in memory, .* another variant$")

    def test_a_page_is_found_whatever_its_coding_by_who_names_none(self):
        origin = Origin(self, {"/v": by_encoding})
        for normalised, coding in ("on", "gzip, br"), ("off", "gzip;q=0.9, x-own"):
            with self.subTest(normalised):
                proxy = self.encore(admission={"policy": "always"},
                                    cache={"normalise_accept_encoding": normalised})
                url = origin.url("/v")
                get(proxy.port, url, fields=[("Accept-Encoding", coding)])
                eventually(lambda: self.api(proxy, url)["stored"], "it is stored")
                said = self.api(proxy, url)
                self.assertEqual("hit", said["now"]["kind"])
                self.assertIn("Accept-Encoding: ", said["now"]["text"])
                self.assertTrue(said["stored"][0]["selected"])
                # The report for a request that names one covers that alone.
                named = self.api(proxy, url, header="Accept-Encoding: zstd")
                self.assertEqual("miss", named["now"]["kind"])

    def test_variants_without_and_with_cookies_are_told_apart(self):
        origin = Origin(self, {"/v": fresh(b"v", 600, Vary="Accept-Encoding, Cookie")})
        proxy = self.encore(admission={"policy": "always"})
        url = origin.url("/v")
        for fields in [], [("Cookie", "s=hush")]:
            get(proxy.port, url, fields=[("Accept-Encoding", "gzip"), *fields])
        eventually(lambda: len(self.api(proxy, url)["stored"]) == 2, "both are stored")
        said = {each["varies_by"]: each["selected"] for each in self.api(proxy, url)["stored"]}
        self.assertEqual({"accept-encoding = gzip, cookie = none": True,
                          "accept-encoding = gzip, cookie = ***": False}, said)
        said = {each["varies_by"]: each["selected"]
                for each in self.api(proxy, url, header="Cookie: s=hush")["stored"]}
        self.assertTrue(said["accept-encoding = gzip, cookie = ***"])

    def test_an_overtaken_answer_is_said_to_be_one_and_counted(self):
        asked, go = threading.Event(), threading.Event()

        def page(exchange):
            if exchange.request.method == "POST":
                return response(b"changed")
            if not asked.is_set():
                asked.set()
                exchange.wait(go)
            return fresh(b"page", 600)
        origin = Origin(self, {"/a": page})
        proxy = self.encore(admission={"policy": "always"})
        url = origin.url("/a")
        reader = threading.Thread(target=get, args=(proxy.port, url))
        reader.start()
        self.assertTrue(asked.wait(60))
        with Client(proxy.port) as client:
            self.assertEqual(200, client.ask(url, method="POST", body=b"x").status)
        go.set()
        reader.join()
        eventually(lambda: [each for each in self.api(proxy, url)["lately"]
                            if each.get("overtaken")], "it is noted")
        self.assertIn("overtaken by a newer response or a purge", self.cli(proxy, url)[0])
        self.assertEqual(1, proxy.metrics()["encore_overtaken_total"])
        records = [r for r in proxy.access_records(2) if r["method"] == "GET"]
        self.assertEqual(["overtaken"], [record["detail"] for record in records])

    def test_stale_negative_and_what_could_not_be_stored(self):
        origin = Origin(self, {
            "/stale": response(b"s", Cache_Control="max-age=0", ETag='"s"'),
            "/swr": response(b"s", Cache_Control="max-age=0, stale-while-revalidate=600",
                             ETag='"s"'),
            "/gone": response(b"n", "404 Not Found", Cache_Control="max-age=600"),
            "/no-store": response(b"n", Cache_Control="no-store"),
            "/private": response(b"n", Cache_Control="private, max-age=5"),
            "/star": fresh(b"n", Vary="*"),
            "/purged": fresh(b"p", 600, ETag='"p"')})
        proxy = self.encore(admission={"policy": "always"})
        for path in list(origin.routes):
            get(proxy.port, origin.url(path))
        for path in ("/stale", "/swr", "/gone", "/purged"):
            eventually(lambda: self.api(proxy, origin.url(path))["stored"], f"{path} is stored")
        said = self.api(proxy, origin.url("/stale"))
        self.assertEqual("validate", said["now"]["kind"])
        self.assertLessEqual(said["stored"][0]["fresh_seconds"], 0)
        self.assertEqual("stale", self.api(proxy, origin.url("/swr"))["now"]["kind"])
        said = self.api(proxy, origin.url("/gone"))
        self.assertEqual(("hit", 404), (said["now"]["kind"], said["stored"][0]["status"]))
        # A client's own directive applies if the proxy honours it.
        said = self.api(proxy, origin.url("/purged"), header="Cache-Control: no-cache")
        self.assertEqual(("validate", "validated at its origin, as the client asks"),
                         (said["now"]["kind"], said["now"]["text"]))
        self.assertEqual("bypass", self.api(proxy, origin.url("/purged"), method="POST")["now"]["kind"])
        self.assertEqual("only-if-cached", self.api(proxy, origin.url("/new"),
                                                    header="Cache-Control: only-if-cached")["now"]["kind"])
        proxy.admin("/purge?soft=1&url=" + urllib.parse.quote(origin.url("/purged"), ""), "POST")
        self.assertEqual("validate", self.api(proxy, origin.url("/purged"))["now"]["kind"])
        for path, clause in (("/no-store", "RFC 9111 5.2.2.5"), ("/private", "RFC 9111 5.2.2.7"),
                             ("/star", "RFC 9111 4.1")):
            with self.subTest(path):
                noted = self.lately(proxy, origin.url(path), "uncacheable")
                self.assertEqual((200, clause, 1),
                                 (noted["status"], noted["clause"], noted["times"]))
                said = self.api(proxy, origin.url(path))
                self.assertEqual(([], "uncacheable"), (said["stored"], said["now"]["kind"]))
                text, _ = self.cli(proxy, origin.url(path))
                self.assertIn(f"({clause})", text)
        get(proxy.port, origin.url("/no-store"))
        eventually(lambda: self.lately(proxy, origin.url("/no-store"), "uncacheable")["times"] == 2,
                   "the second is counted with the first")

    def test_what_lies_on_disk_alone(self):
        origin = Origin(self, default=lambda x: x.send(fresh(b"d" * 40 * KIB, 6000)))
        proxy = self.encore(cache={"memory": "4MiB"}, admission={"policy": "always"},
                            disk=[{"path": str(self.directory / "disk"), "size": "64MiB",
                                   "segment": "1MiB"}])
        urls = [origin.url(f"/{i}") for i in range(250)]
        for url in urls:
            get(proxy.port, url)

        def on_disk():
            for url in urls:
                said = self.api(proxy, url)
                if [each["where"] for each in said["stored"]] == ["disk"]:
                    return url, said
            return None
        url, said = eventually(on_disk, "one is on disk alone")
        self.assertEqual("disk", said["now"]["kind"])
        self.assertTrue(said["stored"][0]["selected"])
        self.assertGreater(said["stored"][0]["record_bytes"], 40 * KIB)
        # It is still not in memory for that.
        self.assertEqual(["disk"], [each["where"] for each in self.api(proxy, url)["stored"]])
        self.assertIn("detail=disk", field(get(proxy.port, url), "Cache-Status"))

    def test_rules_and_lists_speak_first(self):
        origin = Origin(self, {"/x": fresh(b"x")})
        proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "deny_hosts": ["*.denied.test"]}],
            rule=[{"name": "no-ads", "path": "/ads/*", "deny": 451},
                  {"name": "none", "path": "/none/*", "admission": "never"},
                  {"name": "through", "path": "/through/*", "cache": False}])
        for url, answer in ((origin.url("/ads/1"), "451 here: rule-no-ads"),
                            ("http://a.denied.test/", "403 here: host-not-allowed")):
            said = self.api(proxy, url)
            self.assertIn({"label": "answer", "text": answer}, said["configuration"])
            self.assertNotIn("now", said)
        said = self.api(proxy, origin.url("/none/1"))
        self.assertIn("not stored, by the rule", said["now"]["text"])
        get(proxy.port, origin.url("/through/1"))
        noted = self.lately(proxy, origin.url("/through/1"), "uncacheable")
        self.assertEqual(("rule", "a [[rule]]"), (noted["reason"], noted["clause"]))
        self.assertEqual("bypass", self.api(proxy, origin.url("/through/1"))["now"]["kind"])
        text = self.cli(proxy, origin.url("/through/1"))[0]
        for label in ("stored", "remembered"):
            self.assertRegex(text, rf"(?m)^{label} +no lookup$")

    def test_a_reverse_listener_among_others(self):
        origin = Origin(self, {"/r": fresh(b"r", 600)})
        forward, reverse = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        proxy = self.encore(
            listen=[{"address": forward}, {"address": reverse, "mode": "reverse"}],
            origin=[{"host": "site.test", "servers": [f"http://{origin.authority}"]}],
            admission={"policy": "always"})
        url = "http://site.test/r"
        get(int(reverse.rpartition(":")[2]), url)
        eventually(lambda: self.api(proxy, url, listener=reverse)["stored"], "it is stored")
        said = self.api(proxy, url, listener=reverse)
        self.assertEqual("hit", said["now"]["kind"])
        self.assertIn(f"site.test / -> ", " ".join(line["text"] for line in said["configuration"]))
        # Objects of one are not the other's.
        self.assertEqual("miss", self.api(proxy, url, listener=forward)["now"]["kind"])
        text, _ = self.cli(proxy, url, "--listener", reverse)
        self.assertRegex(text, r"(?m)^now             hit, fresh for ")
        self.assertIn({"label": "answer", "text": "404 here: no-route"},
                      self.api(proxy, "http://other.test/", listener=reverse)["configuration"])

    def test_who_asks_while_all_changes_gets_an_answer(self):
        """Clients on the same URLs, during purges and reloads: each response is whole."""
        origin = Origin(self, {"/v": by_encoding}, default=lambda x: x.send(fresh(b"y" * 3000, 600)))
        proxy = self.encore(cache={"memory": "1MiB"}, admission={"policy": "always"})
        stop, faults = threading.Event(), []

        def load(seed):
            i = seed
            while not stop.is_set():
                i += 1
                name = "/v" if i % 3 == 0 else f"/{i % 400}"
                answer = get(proxy.port, origin.url(name),
                             fields=[("Accept-Encoding", ("gzip", "br", "zstd")[i % 3])])
                if answer.status != 200:
                    faults.append(answer.status)
        threads = [threading.Thread(target=load, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        try:
            kinds = set()
            for i in range(150):
                said = self.api(proxy, origin.url("/v" if i % 2 else f"/{i}"),
                                header="Accept-Encoding: gzip")
                kinds.add(said["now"]["kind"])
                if i % 25 == 10:
                    proxy.admin("/purge?url=" + urllib.parse.quote(origin.url("/v"), ""), "POST")
                if i % 25 == 20:
                    proxy.sections["cache"]["memory"] = f"{1 + i % 2}MiB"
                    proxy.write_config()
                    proxy.signal(signal.SIGHUP)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual([], faults)
        self.assertLessEqual(kinds, {"hit", "miss"})


class Asked(Explained):
    def test_what_cannot_be_explained_is_said(self):
        proxy = self.encore()
        for query, said in (("", "is not an http(s) URL"),
                            ("url=nonsense", '"nonsense" is not an http(s) URL'),
                            ("url=http://h/&client=x", '"x" is not an address'),
                            ("url=http://h/&listener=x", '"x" is not the address of a [[listen]]'),
                            ("url=http://h/&header=x", '"x" is not a field'),
                            ("url=http://h/&header=A:%20b%0d%0aC:%20d", "is not a field"),
                            ("url=http://h/&method=GET%20/", '"GET /" is not a method'),
                            ("url=http://h/&colour=red", "accepted: url, method, header"),
                            ("url=%zz", "an invalid escape"),
                            ("url=http://h/" + "a" * 9000 + "&header=" + "X:" + "b" * 5000, "")):
            with self.subTest(query[:60]):
                status, text = proxy.admin("/api/explain?" + query)
                if said:
                    self.assertEqual(400, status, text)
                    self.assertIn(said, text)
                else:
                    self.assertEqual(200, status, text)
        self.assertEqual(405, proxy.admin("/api/explain?url=http://h/", "POST")[0])
        self.assertEqual(403, proxy.admin("/api/explain?url=http://h/",
                                          headers={"Host": "elsewhere.example"})[0])

    def test_the_page_has_a_box_and_trusts_no_text(self):
        proxy = self.encore()
        status, text = proxy.admin("/explain")
        self.assertEqual(200, status)
        self.assertIn('name="url"', text)
        status, text = proxy.admin("/explain?url=http://h.test/%3Cscript%3E%22%27&header="
                                   + urllib.parse.quote('X: "><script>alert(1)</script>'))
        self.assertEqual(200, status)
        self.assertNotIn("<script>", text)
        self.assertIn("miss", text.replace("nothing", "miss"))
        status, text = proxy.admin("/explain?url=%3Cb%3E")
        self.assertEqual(400, status)
        self.assertNotIn("<b>", text)

    def test_its_pages_have_the_style_of_the_live_one_and_a_policy_for_it_alone(self):
        proxy = self.encore()
        live = proxy.admin("/")[1]
        style = live[live.index("<style>"):live.index("</style>")]
        digest = base64.b64encode(hashlib.sha256(style[7:].encode()).digest()).decode()
        for path in ("/explain", "/explain?url=http://h.test/", "/shadow"):
            connection = http.client.HTTPConnection("127.0.0.1", proxy.admin_port, timeout=30)
            connection.request("GET", path)
            answer = connection.getresponse()
            policy, page = answer.getheader("Content-Security-Policy"), answer.read().decode()
            connection.close()
            self.assertIn(style, page)
            self.assertIn(f"style-src 'sha256-{digest}'", policy)
            self.assertIn("default-src 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertNotIn("<script", page)
            self.assertNotIn(" style=", page)

    def test_without_a_proxy_the_configuration_speaks_alone(self):
        def asked(*arguments):
            """The pseudonym in Via is drawn anew by each process."""
            text, noted = self.cli(proxy, *arguments)
            return "".join(line for line in text.splitlines(True) if "Via: " not in line), noted
        proxy = self.encore()
        url = "http://h.test/a"
        online, noted = asked(url)
        self.assertIn("\nnow             ", online)
        self.assertEqual("", noted)
        offline, noted = asked(url, "--offline")
        self.assertEqual("", noted)
        self.assertTrue(online.startswith(offline), online)
        self.assertNotIn("\nnow ", offline)
        proxy.stop()
        alone, noted = asked(url)
        self.assertEqual(offline, alone)
        self.assertIn("by the configuration alone", noted)
        self.assertIn(f"http://127.0.0.1:{proxy.admin_port}/api/explain", noted)
        self.cli(proxy, "nonsense", status=2)


if __name__ == "__main__":
    unittest.main()
