"""Rows of caching behaviour, and what runs them: each row is a script of requests with what the
origin answers and what the client must see. A file of tests holds a table of rows and runs all of
them side by side, in forward and in reverse mode, with a conventional cache (`always`) and again
under `second-hit` with each key asked for once before.

    row("4.2.1", "s-maxage beats max-age", miss(Cache_Control="max-age=600, s-maxage=0"), miss())

A step says how the proxy must treat the request: `miss` (the origin is asked, not conditionally),
`hit` (it is not asked), `valid` (it validates the stored response). A body is unique to the step
that sent it, so a hit tells which response it came from.
"""

import concurrent.futures
import email.utils
import re
import threading
import time

from client import Client, NoResponse, field
from harness import Case, eventually, free_port
from origin import Closed, Origin

SITE = "site.example"
HIT = re.compile(r"(^|, )encore; hit(;|$)")


def date(offset=0):
    """A date so many seconds from the moment at which the origin answers."""
    return lambda: email.utils.formatdate(time.time() + offset, usegmt=True)


def text_of(value):
    return str(value() if callable(value) else value)


class Step:
    """One request. Capitalised keywords are the answer's fields (_ for -, a list for several
    lines, None for none); {path} in them is the path asked for."""

    def __init__(self, kind, method="GET", req=None, status=200, body=None, wait=0, want_status=None,
                 want=None, lacks=(), url="", raw=None, sees=None, upstream=None, send_body=b"",
                 says=None, settle=False, prime=True,
                 trailers=None, **fields):
        self.kind, self.method, self.status, self.wait = kind, method, status, wait
        self.req = [(name.replace("_", "-"), line) for name, value in (req or {}).items()
                    for line in (value if isinstance(value, list) else [value])]
        self.body, self.url, self.raw, self.sees = body, url, raw, sees
        self.want_status, self.want, self.lacks = want_status, want or {}, lacks
        self.upstream, self.send_body, self.says = upstream or {}, send_body, says
        self.trailers = trailers
        self.prime = prime  # False: the URL is another's in other words
        self.settle = settle  # afterwards, until the origin was asked in the background
        self.fields = fields
        self.number = 0

    def content(self):
        if self.body is not None:
            return self.body.encode() if isinstance(self.body, str) else self.body
        return b"" if self.status in (204, 304) else f"body of step {self.number}\n".encode()

    def answer(self, method, path):
        if isinstance(self.raw, bytes):
            return self.raw
        body = self.content()
        fields = {"Date": date(), **{n.replace("_", "-"): v for n, v in self.fields.items()}}
        if self.status not in (204, 304):
            fields.setdefault("Content-Length", len(body))
        lines = [f"{name}: {text_of(line)}\r\n".replace("{path}", path) for name, value in fields.items()
                 if value is not None for line in (value if isinstance(value, list) else [value])]
        head = f"HTTP/1.1 {self.status} Said\r\n{''.join(lines)}\r\n".encode("latin-1")
        return head + (b"" if method == "HEAD" else body)


def miss(**options):
    return Step("miss", **options)


def hit(**options):
    return Step("hit", **options)


def valid(**options):
    options.setdefault("status", 304)
    return Step("valid", **options)


def refused(status, **options):
    """The proxy answers by itself, without origin or cache."""
    return Step("own", want_status=status, **options)


class Row:
    def __init__(self, clause, name, steps, modes):
        self.clause, self.name, self.steps, self.modes = clause, name, steps, modes
        for number, step in enumerate(steps, 1):
            step.number = number


class Table:
    def __init__(self):
        self.rows = []

    def __call__(self, clause, name, *steps, modes=("forward", "reverse")):
        if any(name == row.name for row in self.rows):
            raise ValueError(f"two rows are named {name!r}")
        self.rows.append(Row(clause, name, steps, modes))


class Failed(Exception):
    pass


class Run:
    """One row in one mode."""

    def __init__(self, row, mode, path, origin, encore, ports):
        self.row, self.mode, self.path = row, mode, path
        self.origin, self.encore, self.port = origin, encore, ports[mode]
        self.seen = []  # (step's number, the origin's request)
        self.lock = threading.Lock()
        self.stored_body = None

    def prime(self):
        for url in sorted({step.url for step in self.row.steps if step.prime}):
            answer = self.ask("GET", url, [("X-Step", "prime")], b"")
            if answer.status != 200:
                raise Failed(f"priming gave {answer.status}")

    def serve(self, exchange):
        number = dict(exchange.request.fields).get("x-step")
        if number == "prime":
            return (b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 5\r\n\r\n"
                    b"prime")
        step = self.row.steps[int(number) - 1]
        with self.lock:
            self.seen.append((int(number), exchange.request))
        if callable(step.raw):
            return step.raw(exchange)
        return step.answer(exchange.request.method, self.path)

    def ask(self, method, url, fields, body):
        target, host = self.path + url, SITE
        if self.mode == "forward":
            target, host = self.origin.url(target), self.origin.authority
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}",
                 *(f"{name}: {text_of(value)}" for name, value in fields)]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        with Client(self.port) as client:
            client.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
            return client.read_response(method)

    def requests_of(self, step):
        with self.lock:
            return [request for number, request in self.seen if number == step.number]

    def run(self):
        for step in self.row.steps:
            try:
                self.one(step)
            except (Failed, NoResponse, OSError) as error:
                raise Failed(f"step {step.number} ({step.kind}): {error}") from error

    def one(self, step):
        if step.wait:
            time.sleep(step.wait)
        if step.sees is Closed:
            try:
                answer = self.ask(step.method, step.url, self.fields_of(step), step.send_body)
            except NoResponse:
                return
            raise Failed(f"a complete response came: {answer.status} {answer.body[:60]!r}")
        answer = self.ask(step.method, step.url, self.fields_of(step), step.send_body)
        self.check_origin(step, answer)
        self.check_answer(step, answer)
        if step.settle:
            try:
                eventually(lambda: self.requests_of(step), "a refresh", deadline=10)
            except AssertionError as error:
                raise Failed(error) from error
            time.sleep(0.2)
            self.check_upstream(step, self.requests_of(step)[0])

    def fields_of(self, step):
        return [("X-Step", str(step.number)), *step.req]

    def check_origin(self, step, answer):
        requests = self.requests_of(step)
        said = field(answer, "Cache-Status")
        where = f"{answer.status}, Cache-Status {said}"
        asked = bool(requests)
        if step.kind in ("hit", "own") and asked and not step.settle:
            raise Failed(f"the origin was asked: {where}; {requests[0].head[:400]!r}")
        if step.kind in ("miss", "valid") and not asked:
            raise Failed(f"the origin was not asked: {where}")
        if step.kind in ("miss", "valid"):
            self.check_upstream(step, requests[-1])
        if said is None:
            raise Failed(f"no Cache-Status: {where}")
        if bool(HIT.search(said)) != (step.kind == "hit"):
            raise Failed(f"Cache-Status says {said}")
        if step.says and not re.search(step.says, said):
            raise Failed(f"Cache-Status says {said}, expected {step.says}")

    def check_upstream(self, step, request):
        fields = dict(request.fields)
        names = {name for name, _ in step.req}
        ours = [name for name in ("if-none-match", "if-modified-since") if name in fields
                and name not in {n.lower() for n in names}]
        if step.kind == "valid" and not ours:
            raise Failed(f"the request was not conditional: {request.head!r}")
        if step.kind == "miss" and ours and "any" not in step.upstream:
            raise Failed(f"the request was conditional: {request.head!r}")
        for name, value in step.upstream.items():
            if name == "any":
                continue
            of_line = {"method": request.method, "target": request.target.removeprefix(self.path)}
            got = of_line.get(name, fields.get(name.lower().replace("_", "-")))
            if got != (value() if callable(value) else value):
                raise Failed(f"the origin saw {name}: {got!r}, expected {value!r}")

    def check_answer(self, step, answer):
        kind, method = step.kind, step.method
        status = step.want_status or (200 if kind in ("hit", "valid") else step.status)
        if answer.status != status:
            raise Failed(f"status {answer.status}, expected {status}: "
                         f"{field(answer, 'Cache-Status')}")
        if kind == "miss" and step.sees is None and not callable(step.raw):
            expected = b"" if method == "HEAD" or status in (204, 304) else step.content()
        else:
            expected = self.stored_body if step.sees is None else step.sees
        if isinstance(expected, str):
            expected = expected.encode()
        if kind in ("hit", "valid") and step.sees is None and (method == "HEAD" or status == 304):
            expected = b""
        if callable(expected):
            if not expected(answer.body):
                raise Failed(f"body {answer.body!r}")
        elif kind != "own" and expected is not None and answer.body != expected:
            raise Failed(f"body {answer.body[:80]!r}, expected {expected[:80]!r}")
        if kind == "miss" and method != "HEAD" and status not in (304,) and step.sees is None:
            self.stored_body = answer.body
        if step.trailers is not None and answer.trailers != step.trailers:
            raise Failed(f"trailers {answer.trailers}, expected {step.trailers}")
        for name, value in step.want.items():
            got = field(answer, name.replace("_", "-"))
            good = value(got) if callable(value) else got == value
            if not good:
                raise Failed(f"{name}: {got!r}, expected {value!r}")
        for name in step.lacks:
            if field(answer, name.replace("_", "-")) is not None:
                raise Failed(f"{name} came: {field(answer, name)!r}")


def between(low, high):
    """A field that is a number in this range."""
    return lambda text: text is not None and text.isdigit() and low <= int(text) <= high


class TableCase(Case):
    """Runs a table four times. Files of tests derive from it and set `table`."""

    table = None
    cache = {}

    def run_table(self, policy):
        origin = Origin(self)
        ports = {"forward": free_port(), "reverse": free_port()}
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{port}", "mode": mode} for mode, port in ports.items()],
            origin=[{"servers": [origin.url("")]}], admission={"policy": policy},
            cache={"memory": "64MiB", **self.cache})
        runs = []
        for number, row in enumerate(self.table.rows):
            for mode in row.modes:
                path = f"/{mode}/{number}"
                run = Run(row, mode, path, origin, encore, ports)
                for url in {step.url for step in row.steps}:
                    origin.routes[(path + url).partition("?")[0]] = run.serve
                runs.append(run)

        def one(run):
            try:
                if policy == "second-hit":
                    run.prime()
                run.run()
            except Failed as error:
                return f"{run.mode}: [{run.row.clause}] {run.row.name}: {error}"
            return None
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            failures = [text for text in pool.map(one, runs) if text]
        if failures:
            self.fail(f"{len(failures)} of {len(runs)} rows:\n" + "\n".join(failures))


def cases(table, **cache):
    """The two runs of a table, as a class for unittest to find."""

    class Rows(TableCase):
        maxDiff = None

        def test_every_row_with_a_conventional_cache(self):
            self.run_table("always")

        def test_every_row_under_second_hit_with_each_key_primed(self):
            self.run_table("second-hit")

    Rows.table, Rows.cache = table, cache
    return Rows
