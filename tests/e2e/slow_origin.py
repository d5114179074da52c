"""Origins that answer nothing for a while, and proxies before them."""

import threading

from client import Client, field
from harness import Case, eventually, free_port
from origin import Origin, response


class SlowOrigin(Origin):
    """Answers nothing before `go` is set; counts how many requests it has at a time."""

    def __init__(self, case, close=False):
        self.go, self.busy, self.busiest = threading.Event(), 0, 0
        self._counting = threading.Lock()
        self._close = close
        super().__init__(case, default=self._hold)

    def _hold(self, exchange):
        with self._counting:
            self.busy += 1
            self.busiest = max(self.busiest, self.busy)
        exchange.wait(self.go)
        with self._counting:
            self.busy -= 1
        if self._close:
            exchange.close()
        return response(b"slow", Cache_Control="no-store")


class SlowOriginCase(Case):
    """One worker, so that it has the whole of what a process may have."""

    def proxies(self, origins=None, timeouts=None, **upstream):
        """A forward and a reverse proxy, each with origins of its own."""
        for mode in ("forward", "reverse"):
            servers = origins() if origins else [SlowOrigin(self)]
            sections = {"workers": {"count": 1}, "upstream": upstream, "timeouts": timeouts or {}}
            if mode == "reverse":
                sections["listen"] = [{"address": f"127.0.0.1:{free_port()}", "mode": mode}]
                sections["origin"] = [{"servers": [s.url("") for s in servers]}]
            yield self.encore(**sections), servers[0]

    def request(self, encore, origin, path):
        client = Client(encore.port)
        self.addCleanup(client.close)
        client.request(origin.url(path))
        return client

    def waits(self, encore, count):
        eventually(lambda: encore.metrics()["encore_origin_waits_total"] == count,
                   f"{count} wait in line")

    def refused(self, answer, detail="origin-busy"):
        self.assertEqual(503, answer.status)
        self.assertIn(f"detail={detail}", field(answer, "Cache-Status"))
