"""A node that joins a fleet: without the admission filter of a node that is there, with it by
--adopt-from, and with it by itself. How many requests it takes until its hit ratio is the fleet's.
Counted in requests, so that it is the same on each machine."""

import itertools
import json
import random
import sys

from client import Client, field
from engine import Engine
from harness import eventually
from test_handover import HandoverCase

OBJECTS_IN_ALL = 2000
SKEW = 0.9  # Zipf's
WARM = 15000
WARM_OTHERS = 5000
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

    def warm_node(self, warm=WARM, seed=1, **sections):
        node = self.node(**sections)
        self.hits(node, Stream(seed).draw(warm))
        return node

    @staticmethod
    def fleet(node):
        return json.loads(node.admin("/fleet")[1])

    def join_by_itself(self):
        """A fourth node, whose requests begin when it has adopted the filter of one of three."""
        engine = Engine(self)
        nodes = [self.warm_node(warm, seed, fleet={"purges": engine.url, "node": name})
                 for name, warm, seed in (("n0", WARM, 1), ("n1", WARM_OTHERS, 3),
                                          ("n2", WARM_OTHERS, 4))]
        joining = self.node(fleet={"purges": engine.url, "node": "n3"})
        eventually(lambda: self.fleet(joining)["filter"]["state"] == "adopted", "it adopts")
        found = self.fleet(joining)["filter"]
        self.assertEqual("n0", found["from"])
        return *self.join(nodes[0], joining), found["seconds"]

    def test_a_node_with_the_filter_of_another_is_one_of_the_fleet_sooner(self):
        cold, cold_cost = self.join(self.warm_node(), self.node())
        warm = self.warm_node()
        knows = self.node(arguments=["--adopt-from", f"http://127.0.0.1:{warm.admin_port}"])
        self.assertIn("adopted 2 generations", knows.output())
        ordered, ordered_cost = self.join(warm, knows)
        alone, alone_cost, seconds = self.join_by_itself()
        print(f"{OBJECTS_IN_ALL} objects, Zipf {SKEW}, to {REACHED:.0%} of the fleet's hit ratio: "
              f"without a filter {cold} requests, {cold_cost} to the origin; by --adopt-from "
              f"{ordered}, {ordered_cost}: {ordered / cold:.0%}; by itself {alone}, {alone_cost}: "
              f"{alone / cold:.0%}, adopted {seconds:.1f} s after its start", file=sys.stderr)
        self.assertLess(ordered, cold)
        self.assertLess(ordered_cost, cold_cost)
        self.assertLessEqual(alone, ordered + WINDOW)
        self.assertLess(alone_cost, cold_cost)
