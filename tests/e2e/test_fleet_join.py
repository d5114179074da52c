"""A node that joins a fleet, with and without the admission filter of a node that is there: how many
requests it takes until its hit ratio is the fleet's. Counted in requests, so that it is the same on
each machine."""

import itertools
import random
import sys

from client import Client, field
from test_handover import HandoverCase

OBJECTS_IN_ALL = 2000
SKEW = 0.9  # Zipf's
WARM = 15000
WINDOW = 500
# The node is one of the fleet from the first window on whose ratio is this part of the fleet's.
REACHED = 0.95


class Stream:
    """Draws of objects by Zipf's law; the same for the same seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.objects = range(OBJECTS_IN_ALL)
        self.weights = list(itertools.accumulate((rank + 1) ** -SKEW for rank in self.objects))

    def draw(self, count):
        return self.random.choices(self.objects, cum_weights=self.weights, k=count)


class Joining(HandoverCase):
    def hits(self, node, objects):
        with Client(node.port) as client:
            return sum("; hit" in field(client.ask(self.origin.url(f"/object/{number}")),
                                        "cache-status") for number in objects)

    def join(self, warm, node):
        """(requests until it is one of the fleet, those of them that went to the origin)"""
        stream, cost = Stream(seed=2), 0
        for window in itertools.count(1):
            draws = stream.draw(WINDOW)
            own = self.hits(node, draws)
            cost += WINDOW - own
            self.assertLess(window, 100)
            if own >= REACHED * self.hits(warm, draws):
                return window * WINDOW, cost

    def test_a_node_with_the_filter_of_another_is_one_of_the_fleet_sooner(self):
        warm = self.node()
        self.hits(warm, Stream(seed=1).draw(WARM))
        url = f"http://127.0.0.1:{warm.admin_port}"
        cold, cold_cost = self.join(warm, self.node())
        knows = self.node(arguments=["--adopt-from", url])
        self.assertIn("adopted 2 generations", knows.output())
        adopted, adopted_cost = self.join(warm, knows)
        print(f"{OBJECTS_IN_ALL} objects, Zipf {SKEW}, to {REACHED:.0%} of the fleet's hit ratio: "
              f"without a filter {cold} requests, {cold_cost} to the origin; with it {adopted}, "
              f"{adopted_cost}: {adopted / cold:.0%} of the time", file=sys.stderr)
        self.assertLess(adopted, cold)
        self.assertLess(adopted_cost, cold_cost)
