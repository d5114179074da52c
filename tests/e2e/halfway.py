"""Responses that stop in the middle until they are let go on."""

import threading

from client import Client
from harness import Case
from origin import fresh


class HalfwayCase(Case):
    def halfway(self, body):
        """A route that sends half of the body, and the event that lets it go on."""
        go = threading.Event()

        def route(exchange):
            answer = fresh(body)
            cut = len(answer) - len(body) // 2
            exchange.send(answer[:cut])
            exchange.wait(go)
            exchange.send(answer[cut:])
        return route, go

    def begin(self, encore, origin, path):
        client = Client(encore.port)
        self.addCleanup(client.close)
        client.request(origin.url(path))
        client.read_head()
        return client
