"""The live page in a real browser: its numbers, what opens, what is purged, and what it costs."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import threading
import unittest

from browser import Page
from client import Client, get
from harness import Case, eventually, free_port, need_program, sanitized
from http2 import Http2Client
from origin import Origin, fresh, response
from upgrading import UpgradingEncore

AXE = pathlib.Path(__file__).parents[2] / "build/npm/node_modules/axe-core/axe.min.js"
REQUESTS = 2_000 if sanitized() else 10_000
CLIENTS = 4
POPULAR, SECRET = 40, "token=open-sesame"


def digits(text):
    return int(text.replace(",", ""))


class LivePage(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, {
            "/private": response(b"x", Cache_Control="private"),
            "/broken": response(b"no", "500 Internal Server Error"),
            "/gone": lambda exchange: exchange.reset(),
        }, default=fresh(b"d" * 3000))

    def reverse(self, **sections):
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"host": "*", "servers": [self.origin.url("")]}], **sections)

    def mixed_load(self, encore, count, seed=1):
        """Hits, misses, what may not be stored, errors, and a client that dies in its head."""
        def run(number):
            draw = random.Random(seed * 100 + number)
            host = f"site{number % 3}.example"
            with Client(encore.port) as client:
                for _ in range(count // CLIENTS):
                    chance = draw.random()
                    path = (f"/popular/{draw.randrange(POPULAR)}" if chance < 0.7 else
                            f"/once/{draw.randrange(10 ** 9)}?{SECRET}" if chance < 0.93 else
                            "/private" if chance < 0.98 else "/broken")
                    client.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
                    client.read_response()
        threads = [threading.Thread(target=run, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        with Client(encore.port) as dying:
            dying.send("GET /half HTTP/1.1\r\nHos")
        for thread in threads:
            thread.join()
        eventually(lambda: sum(encore.stats()["requests"].values()) >= count // CLIENTS * CLIENTS,
                   "all are counted")

    def page(self, encore, path="/", **size):
        page = Page(self.directory, **size)
        self.addCleanup(page.close)
        page.open(f"http://127.0.0.1:{encore.admin_port}{path}")
        page.until("document.querySelector('#version').textContent !== '–'", "numbers are shown")
        return page

    def assert_clean(self, page, encore):
        self.assertEqual([], page.complaints())
        own = (f"http://127.0.0.1:{encore.admin_port}/", "data:", "about:")
        self.assertEqual([], [url for url in page.requested() if not url.startswith(own)])

    def shown_outcomes(self, page):
        rows = page.evaluate("[...document.querySelectorAll('#outcomes button')].map("
                             "b => [b.dataset.outcome, b.querySelector('.count').textContent])")
        return {name: digits(count) for name, count in rows}

    def test_ten_thousand_requests_an_outcome_opened_and_a_purge(self):
        encore = self.reverse(shadow={"policies": ["always", "second-hit"], "sample": 4})
        self.mixed_load(encore, REQUESTS)
        page = self.page(encore)
        stats = encore.stats()
        expected = {name: count for name, count in stats["requests"].items() if count}
        page.until("document.querySelector('#requests-all').textContent === "
                   f"'{sum(expected.values()):,}'")
        self.assertEqual(expected, self.shown_outcomes(page))
        self.assert_numbers(page, stats)
        self.open_an_outcome(page, encore)
        self.shadows(page, encore)
        self.explain(page)
        self.purge(page, encore)
        self.assert_clean(page, encore)

    def assert_numbers(self, page, stats):
        """Checks that figures which stand still after the load are on the page as in /api/stats."""
        cache, counters = stats["cache"], stats["counters"]
        self.assertEqual(cache["objects"], digits(page.text("#objects")))
        self.assertEqual(counters["responses_5xx"], digits(page.text("#errors-all")))
        self.assertGreater(counters["responses_5xx"], 0)
        for name, ratio in (("ohr", "object_hit_ratio"), ("bhr", "byte_hit_ratio")):
            self.assertEqual(f"{100 * stats['ratios'][ratio]:.1f} %", page.text(f"#{name}-all"))
        for name, value in (("saved", counters["body_bytes_hit"]),
                            ("cache-used", cache["used_bytes"])):
            self.assertEqual(page.evaluate(f"bytes({value})"), page.text(f"#{name}"))
        self.assertIn(f"{100 * cache['reused'] / cache['commits']:.1f} % of",
                      page.text("#reused"))
        self.assertGreaterEqual(POPULAR * 3, cache["reused"])
        self.assertGreater(cache["reused"], 0)
        self.assertIn(f"in {counters['kept_out']:,}", page.text("#kept-out"))
        filters = stats["admission"]["filter"]
        self.assertIn(f"{filters['generations'][0]['insertions']:,} of {filters['capacity']:,}",
                      page.text("#gen0"))
        server = stats["servers"][0]
        cells = page.evaluate("[...document.querySelector('#origins tbody tr').children]"
                              ".map(c => c.textContent)")
        self.assertEqual(["*/", server["server"], "up"], cells[:3])
        self.assertEqual([server["sent"], server["connects"]], [digits(cells[4]), digits(cells[6])])
        self.assertEqual([server["errors_4xx"], server["errors_5xx"]],
                         [digits(cells[9]), digits(cells[10])])
        self.assertEqual(counters["origin_requests"], server["sent"])
        self.assertEqual(self.origin.count(), server["sent"])
        hosts = page.evaluate("[...document.querySelectorAll('#hosts-bytes span')]"
                              ".map(s => s.textContent)")
        self.assertEqual({"site0.example", "site1.example", "site2.example"}, set(hosts))

    def open_an_outcome(self, page, encore):
        page.click("[data-outcome='first-request']")
        page.until("document.activeElement.id === 'opened-title'")
        count = encore.stats()["requests"]["first-request"]
        self.assertEqual(f"first-request: {count:,} requests", page.text("#opened-title"))
        reasons = page.evaluate("[...document.querySelectorAll('#reasons b')].map(b => b.textContent)")
        self.assertEqual(count, sum(map(digits, reasons)))
        urls = page.evaluate("[...document.querySelectorAll('#latest td.url')].map(d => d.textContent)")
        self.assertEqual(20, len(urls))
        self.assertTrue(any("/once/" in url and url.endswith("?...") for url in urls), urls)
        self.assertNotIn(SECRET, page.evaluate("document.documentElement.innerHTML"))
        self.assertNotIn(SECRET, encore.admin("/api/outcome?name=first-request")[1])
        page.click("#close")
        page.until("document.querySelector('#opened').hidden")
        self.assertEqual("first-request", page.evaluate("document.activeElement.dataset.outcome"))

    def shadows(self, page, encore):
        policies = json.loads(encore.admin("/api/shadow")[1])["policies"]
        page.until("!document.querySelector('#shadows-section').hidden")
        for policy in policies:
            sampled = f"{policy['sampled']['requests']:,}"
            page.until("[...document.querySelectorAll('#shadows tbody tr')].some(tr => "
                       f"tr.firstChild.textContent === '{policy['policy']}' && "
                       f"tr.lastChild.textContent === '{sampled}')", "the whole sample is shown")
        cells = page.evaluate("[...document.querySelector('#shadows tbody tr').children]"
                              ".map(c => c.textContent)")
        ratio = policies[0]["object_hit_ratio"]
        self.assertEqual(["always", f"{100 * ratio['value']:.1f} %"], cells[:2])
        self.assertEqual(f"{100 * policies[0]['in_force']['object_hit_ratio']:.1f} %", cells[3])

    def explain(self, page):
        def explained(url):
            page.evaluate("document.querySelector('#explain-url').value = ''; "
                          "document.querySelector('#explained').textContent = ''")
            page.type("#explain-url", url)
            page.click("#explain button")
            page.until("document.querySelector('#explained').textContent !== ''")
            return page.text("#explained")

        before = self.origin.count()
        said = explained("http://site0.example/popular/1?a=1&b=<i>")
        self.assertIn("http://site0.example/popular/1?a=1&b=", said)
        self.assertEqual(0, page.evaluate("document.querySelectorAll('#explained *').length"))
        self.assertIn("not known; stored at request 2", said)
        self.assertIn("/popular/1 HTTP/1.1", explained("http://site0.example/popular/1"))
        self.assertRegex(page.text("#explained"), r"now +hit, fresh for \d+[ms]")
        self.assertEqual(before, self.origin.count(), "nobody was asked")

    def purge(self, page, encore):
        url = "http://site0.example/popular/"
        page.evaluate("document.querySelector('#purge-kind').value = 'prefix'")
        page.type("#purge-value", url)
        page.click("#purge button[type=submit]")
        page.until("!document.querySelector('#purge-go').disabled")
        counted = digits(page.text("#purged").split()[0])
        self.assertGreater(counted, 0)
        objects = encore.stats()["cache"]["objects"]
        self.assertEqual(f"Purge {counted:,}", page.text("#purge-go"))
        # A change of the order starts a new count.
        page.type("#purge-value", "x")
        self.assertTrue(page.evaluate("document.querySelector('#purge-go').disabled"))
        page.key("Backspace", 8)
        page.click("#purge button[type=submit]")
        page.until("!document.querySelector('#purge-go').disabled")
        page.click("#purge-go")
        page.until("document.querySelector('#purged').textContent.endsWith('purged.')")
        self.assertEqual(f"{counted:,} purged.", page.text("#purged"))
        self.assertEqual(objects - counted, encore.stats()["cache"]["objects"])
        page.until(f"document.querySelector('#objects').textContent === '{objects - counted:,}'")

    def test_what_is_changed_while_it_is_counted_is_not_purged(self):
        encore = self.reverse(admission={"policy": "always"})
        for path in ("/one", "/two"):
            with Client(encore.port) as client:
                client.send(f"GET {path} HTTP/1.1\r\nHost: site.example\r\n\r\n")
                client.read_response()
        page = self.page(encore)
        page.evaluate("""(() => {
          const real = window.fetch;
          window.fetch = (path, options) => path !== '/purge' ? real(path, options)
            : new Promise((give) => { window.release = () => give(real(path, options)); });
        })()""")
        page.type("#purge-value", "http://site.example/on")
        page.evaluate("document.querySelector('#purge-kind').value = 'prefix'")
        page.click("#purge button[type=submit]")
        page.until("window.release !== undefined")
        # It is still being counted.
        page.key("Backspace", 8)
        page.type("#purge-value", "e")
        page.evaluate("document.querySelector('#purge-value').value = 'http://site.example/t'; "
                      "window.release(); delete window.release")
        page.click("#purge button[type=submit]")
        page.until("window.release !== undefined")
        self.assertTrue(page.evaluate("document.querySelector('#purge-go').disabled"))
        page.evaluate("window.release(); delete window.release")
        page.until("!document.querySelector('#purge-go').disabled")
        # The purge has what was counted, whatever the form has by then.
        page.evaluate("document.querySelector('#purge-value').value = 'http://site.example/o'")
        page.click("#purge-go")
        page.until("window.release !== undefined")
        page.evaluate("window.release()")
        page.until("document.querySelector('#purged').textContent === '1 purged.'")
        asked = self.origin.count()
        for path in ("/one", "/two"):
            with Client(encore.port) as client:
                client.send(f"GET {path} HTTP/1.1\r\nHost: site.example\r\n\r\n")
                client.read_response()
        self.assertEqual(["/two"], [request.target for request in self.origin.requests[asked:]])

    def test_two_who_ask_at_once_count_a_second_once(self):
        page = self.page(self.encore())
        page.until("model.seconds.ends.length >= 2")
        self.assertTrue(page.evaluate("""(async () => {
          const rows = [model.seconds, model.minutes];
          const whole = await ask('/api/live?since=0');
          await Promise.all([poll(), poll(), poll()]);
          model.take(structuredClone(whole));
          model.take(structuredClone(whole));
          return rows.every((each) => new Set(each.ends).size === each.ends.length
            && each.spans.length === each.ends.length
            && [...each.columns.values()].every((column) => column.length === each.ends.length));
        })()"""))

    def test_numbers_are_for_people(self):
        page = self.page(self.encore())
        for expression, shown in (("span(570000)", "6.6 days"), ("span(7200)", "2.0 h"),
                                  ("time(0.9996)", "1,000 ms"), ("time(0.0009996)", "1,000 µs"),
                                  ("time(5000)", "1.4 h"), ("small(0.00001234)", "0.00123 %"),
                                  ("small(1e-9)", "1 in 1,000,000,000"), ("rate(99.97)", "100"),
                                  ("rate(0.0000001)", "<0.0001")):
            self.assertEqual(shown, page.evaluate(expression), expression)

    def test_an_hour_of_samples_leaves_no_memory_behind(self):
        encore = self.encore()
        page = self.page(encore)
        page.evaluate("""(() => {
          paused = true;
          const real = structuredClone(model.live);
          window.at = real.process.now_ms;
          window.hits = 0;
          const rows = (end, span) => ({end, span: end.map(() => span), values: {
            'requests:hit': end.map(() => 90), 'requests:first-request': end.map(() => 10),
            'bytes_to_clients': end.map(() => 1e6), 'hit_p99': end.map(() => 0.001),
            'insertions': end.map(() => 10), 'fpr_theory': end.map(() => 0.01)}});
          const share = (value) => ({value, low: value / 2, high: value * 2});
          window.fetch = async (path) => {
            if (path === '/api/shadow') {
              const counts = {requests: window.hits, bytes_written: window.hits};
              return {ok: true, json: async () => ({sample: 64, dropped_requests: 0, policies: [
                {policy: 'always', object_hit_ratio: share(0.3), byte_hit_ratio: share(0.2),
                 estimated: counts, sampled: counts,
                 in_force: {...counts, object_hit_ratio: 0.3, byte_hit_ratio: 0.2}}]})};
            }
            const answer = structuredClone(real);
            const first = window.hits === 0;
            const count = first ? 3600 : 1;
            const end = Array.from({length: count}, (_, i) => window.at + (i + 1) * 1000);
            window.at += count * 1000;
            window.hits += 90 * count;
            answer.process.now_ms = window.at;
            answer.stats.uptime_seconds += window.hits / 90;
            answer.stats.requests.hit = window.hits;
            const minute = end.filter((ms) => Math.floor(ms / 60000) !== Math.floor((ms - 1000) / 60000));
            answer.history = {seconds: rows(end, 1000), minutes: rows(minute, 60000)};
            return {ok: true, json: async () => answer};
          };
          range = 3600;
          window.live = async (count) => { for (let i = 0; i < count; i++) await poll(); };
        })()""")
        # By then most is compiled: code that the engine has made is memory as well, and no leak.
        for _ in range(10):
            page.evaluate("live(60)")
        before = page.heap_bytes()
        for _ in range(36):
            page.evaluate("live(100)")
        grown = page.heap_bytes() - before
        self.assertEqual(3600, page.evaluate("model.seconds.ends.length"))
        self.assertIn(page.evaluate("model.minutes.ends.length"), range(128, 134))
        self.assertLess(grown, 1 << 20, f"{grown} bytes more after an hour")
        # A poll of the page's own, already in progress, may replace one of these.
        hits = page.evaluate("window.hits")
        self.assertIn(hits // 90 - (3600 + 599 + 3600), (-1, 0, 1))
        self.assertEqual(f"{hits:,}", page.evaluate(
            "document.querySelector('#outcomes .count').textContent"))
        self.assertEqual([], page.complaints())

    def test_it_costs_little_while_it_is_open(self):
        if sanitized():
            self.skipTest("a sanitizer costs more than the page")
        need_program("valgrind")
        # Instructions are counted, not time: what else the machine does changes no figure.
        counted, wrapper = self.directory / "callgrind.out", self.directory / "counted"
        wrapper.write_text("#!/bin/sh\nexec valgrind --quiet --tool=callgrind --instr-atstart=no "
                           f"--callgrind-out-file={counted} {os.environ['ENCORE']} \"$@\"\n")
        wrapper.chmod(0o755)
        encore = self.encore(start=False)
        encore.program = wrapper
        encore.start()
        page = self.page(encore)

        def count(switch):
            subprocess.run(["callgrind_control", "-i", switch, str(encore.process.pid)], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)

        def polls():
            page.evaluate("0")
            return sum("/api/live" in url for url in page.requested())
        count("on")
        polled = polls()
        eventually(lambda: polls() >= polled + 20, "the page has asked twenty times")
        asked = polls() - polled
        count("off")
        encore.stop()
        total = int(re.search(r"^totals: (\d+)", counted.read_text(), re.M).group(1))
        # It asks no more than once a second: a hundredth of a core with 10^9 instructions a second.
        self.assertLess(total / asked, 10e6)
        self.assertGreater(total / asked, 10e4, "it has counted")

    def test_keyboard_narrow_window_and_both_themes(self):
        encore = self.reverse()
        self.mixed_load(encore, 400)
        page = self.page(encore, width=400, height=800)
        for width in (400, 1360):
            page.resize(width, 800)
            for theme in ("light", "dark"):
                page.prefer(theme)
                page.until(f"document.documentElement.dataset.theme === '{theme}'")
                # Charts follow the window a moment later.
                page.until(f"document.documentElement.scrollWidth === {width}")
                self.assert_accessible(page, f"{theme} at {width}")
        page.evaluate("document.querySelector('[data-outcome=\"hit\"]').focus()")
        page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", text="\r",
                  windowsVirtualKeyCode=13)
        page.until("document.activeElement.id === 'opened-title'")
        self.assert_accessible(page, "an outcome opened")
        self.assert_clean(page, encore)

    def assert_accessible(self, page, where):
        if not AXE.exists():
            return
        page.evaluate(AXE.read_text() + "; 0")
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(r => "
                              "r.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html)]))")
        self.assertEqual([], [v for v in found if v[0] in ("serious", "critical")], where)

    def test_replaced_processes_with_clients_are_seen(self):
        target = self.origin.url("").removeprefix("http://")
        encore = UpgradingEncore(self, forward={"connect_ports": [int(target.rpartition(":")[2])]})
        with Client(encore.port) as tunnel:
            tunnel.send(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
            self.assertEqual(200, tunnel.read_response("CONNECT").status)
            page = self.page(encore)
            self.assertTrue(page.evaluate("document.querySelector('#predecessors').hidden"))
            encore.upgrade()
            page.until("document.querySelector('#predecessors').textContent === '1 replaced process has clients'")
            self.assertFalse(page.evaluate("document.querySelector('#predecessors').hidden"))
        page.until("document.querySelector('#predecessors').hidden")

    def test_a_restart_and_a_drain_are_seen(self):
        encore = self.encore(timeouts={"drain": "30s"})
        get(encore.port, self.origin.url("/popular/1"))
        page = self.page(encore)
        self.assertEqual("ready", page.text("#state"))
        encore.signal(signal.SIGHUP)
        page.until("document.querySelector('#reload').textContent.includes('accepted')")
        encore.config_path.write_text("nonsense = 1\n")
        encore.signal(signal.SIGHUP)
        page.until("document.querySelector('#reload').textContent.includes('refused')")
        encore.write_config()
        encore.stop()
        page.until("document.querySelector('#state').textContent === 'gone'")
        self.assertFalse(page.evaluate("document.querySelector('#trouble').hidden"))
        encore.start()
        page.until("document.querySelector('#state').textContent === 'ready'")
        self.assertTrue(page.evaluate("document.querySelector('#trouble').hidden"))

    def test_what_peers_send_is_text(self):
        encore = self.encore()
        nasty = "/<img src=x onerror=alert(1)>\"'&amp;"
        with Client(encore.port) as client:
            client.send(f"GET {self.origin.url('/')}{nasty.replace(' ', '%20')} HTTP/1.1\r\n"
                        "Host: <script>.example\r\n\r\n")
            client.read_response()
        page = self.page(encore)
        page.until("document.querySelectorAll('#outcomes button').length > 0")
        page.click("#outcomes button")
        page.until("!document.querySelector('#opened').hidden")
        self.assertEqual(0, page.evaluate("document.querySelectorAll('img').length"))
        self.assert_clean(page, encore)


    def test_connections_and_streams_of_http_2_are_counted(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def held(exchange):
            exchange.wait(go)
            return response(b"late")
        self.origin.routes["/held"] = held
        encore = self.reverse()
        page = self.page(encore)
        with Http2Client(encore.port) as client, Client(encore.port) as other:
            other.send("GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n")
            other.read_response()
            streams = [client.request("/held") for _ in range(3)]
            page.until("document.querySelector('#connections').textContent === '2' &&"
                       " document.querySelector('#http2-connections').textContent === '1' &&"
                       " document.querySelector('#http2-streams').textContent === '3'")
            go.set()
            for stream in streams:
                self.assertEqual(b"late", client.response(stream).body)
        page.until("document.querySelector('#http2-connections').textContent === '0' &&"
                   " document.querySelector('#http2-streams').textContent === '0'")
        self.assert_clean(page, encore)


class Numbers(Case):
    def test_the_history_is_told_from_where_it_is_known(self):
        origin, encore = Origin(self, default=fresh(b"x")), self.encore()
        for _ in range(5):
            get(encore.port, origin.url("/a"))

        def rows(since=0):
            return json.loads(encore.admin(f"/api/history?since={since}")[1])["seconds"]

        def total():
            values = rows()["values"]
            return sum(sum(values.get(f"requests:{name}", [])) for name in encore.outcomes())
        eventually(lambda: total() == 5, "all requests are in the history")
        known = rows()["end"]
        self.assertEqual(sorted(set(known)), known)
        eventually(lambda: rows(known[-1])["end"], "a further row comes")
        self.assertTrue(all(end > known[-1] for end in rows(known[-1])["end"]))


if __name__ == "__main__":
    unittest.main()
