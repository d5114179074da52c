"""Many users at two tiers with hints and hot keys: no byte that is one user's reaches another."""

import email.utils
import random
import threading
import unittest

from client import field
from origin import response
from test_fleet_tiers import HOST, TiersCase
from test_reverse import ask

USERS = ("alice", "bob", "carol", None)

# How a page says that it is its user's alone, and what tells its user.
PRIVATE = {
    "/no-store": ({"Cache_Control": "no-store"}, "Cookie"),
    "/private": ({"Cache_Control": "private, max-age=600"}, "Cookie"),
    "/no-cache": ({"Cache_Control": "no-cache", "ETag": None}, "Cookie"),
    "/authorization": ({"Cache_Control": "max-age=600"}, "Authorization"),
    "/vary-star": ({"Cache_Control": "max-age=600", "Vary": "*"}, "Cookie"),
    "/vary-cookie": ({"Cache_Control": "max-age=600", "Vary": "Cookie"}, "Cookie"),
    "/vary-two": ({"Cache_Control": "public, max-age=600", "Vary": "X-None, authorization"}, "Authorization"),
}
# Their body is everybody's, and a field of theirs is not.
FIELDS = {
    "/set-cookie": {"Set_Cookie": "user={user}"},
    "/private-field": {"Cache_Control": 'max-age=600, private="X-User"', "X_User": "{user}"},
    "/no-cache-field": {"Cache_Control": 'max-age=600, no-cache="X-User, Set-Cookie"', "X_User": "{user}",
                        "Set_Cookie": "user={user}"},
}


def page_of(body, fields):
    return response(body, **{"Cache_Control": "max-age=600", "Date": email.utils.formatdate(usegmt=True), **fields})


def user_of(request):
    fields = dict(request.fields)
    return fields.get("authorization", fields.get("cookie", "anybody")).split("=")[-1].split()[-1]


class Privacy(TiersCase):
    def page(self, exchange):
        path = exchange.request.target
        user = user_of(exchange.request)
        with self.lock:
            self.asked.append((path, user))
        if path in PRIVATE:
            return page_of(f"{path} of {user}".encode() * 20, PRIVATE[path][0])
        return page_of(f"{path} of all".encode() * 20, {
            name: value.format(user=user) for name, value in FIELDS.get(path, {}).items()})

    def request(self, node, path, user):
        name = PRIVATE.get(path, ({}, "Cookie"))[1]
        fields = [] if user is None else [(name, f"user={user}" if name == "Cookie" else f"Basic {user}")]
        # As if a cache before this one had had it.
        fields.append(("Cache-Status", "parent0; hit, front0; hit"))
        answer = ask(node.port, path, HOST, fields=fields)
        text = answer.body + b"\n" + b"\n".join(f"{key}: {value}".encode() for key, value in answer.fields)
        others = [other for other in (*USERS, "anybody") if other not in (user or "anybody", None)]
        # One without credentials is everybody's: credentials are no part of a key (RFC 9111 3.5).
        is_shared = path == "/authorization" and b"of anybody" in answer.body
        if is_shared:
            others = [other for other in USERS if other]
        for other in others:
            self.assertNotIn(f"of {other}" if other == "anybody" else other, text.decode("latin-1"), (path, user))
        if path in PRIVATE and not is_shared:
            self.assertIn(f"of {user or 'anybody'}".encode(), answer.body)
        self.assertEqual(200, answer.status)
        return answer

    def setUp(self):
        super().setUp()
        self.lock = threading.Lock()
        self.asked = []
        # A key is hot after 32 requests.
        self.tiers(default=self.page)

    def test_one_after_the_other_and_hot(self):
        """One user asks until the keys are hot, everywhere; then others do."""
        for path in [*PRIVATE, *FIELDS]:
            for number in range(45):
                self.request(self.fronts[number % 3], path, "alice")
            for number in range(12):
                self.request(self.fronts[number % 3], path, USERS[1 + number % 3])
            self.request(self.fronts[0], path, "alice")
        for path in FIELDS:
            # It is stored, without them.
            answer = self.request(self.fronts[1], path, "bob")
            self.assertIn("; hit", field(answer, "Cache-Status"), path)

    def test_at_the_same_time(self):
        paths = [*PRIVATE, *FIELDS] * 2
        faults = []

        def run(number):
            chance = random.Random(number)
            try:
                for _ in range(60):
                    self.request(chance.choice(self.fronts), chance.choice(paths), USERS[number % len(USERS)])
            except (AssertionError, OSError) as error:
                faults.append(error)
        threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], faults)
        # Each user was seen by the origin at each page that is a user's.
        for path in set(PRIVATE) - {"/authorization"}:
            for user in USERS:
                self.assertIn((path, user or "anybody"), self.asked)


class HotOnPurpose(TiersCase):
    parents_count = 3

    def test_one_client_spreads_few_keys_and_evicts_none(self):
        """A hot key costs two requests at each parent; others stay where they are."""
        self.tiers(default=lambda x: page_of(
            x.request.target.encode(), {"Cache_Control": "no-store"} if "attack" in x.request.target else {}))
        front = self.fronts[0]
        kept = [f"/kept/{number}" for number in range(60)]
        for each in self.fronts * 2:
            for path in kept:
                self.ask(each, path)
        asked = self.origin.count()
        before = [sum(parent.outcomes().values()) for parent in self.parents]
        for number in range(600):
            self.ask(front, f"/attack/{number % 3}")
        # The uncacheable keys are spread: all parents are asked.
        after = [sum(parent.outcomes().values()) for parent in self.parents]
        self.assertGreater(min(b - a for a, b in zip(before, after)), 60)
        self.assertEqual(asked + 600, self.origin.count())
        for each in self.fronts:
            for path in kept:
                self.assertIn("; hit", self.members(self.ask(each, path))[-1])
        self.assertEqual(asked + 600, self.origin.count())

    def test_many_names_of_one_host_keep_a_hashed_group_whole(self):
        """Each Host makes other keys: they are divided, and a path is still found."""
        self.tiers(default=lambda x: page_of(x.request.target.encode(), {}))
        front = self.fronts[0]
        for _ in range(2):
            self.ask(front, "/kept")
        for number in range(1500):
            answer = ask(front.port, f"/{number % 3}", f"h{number}.example")
            self.assertEqual(200, answer.status)
        shares = [sum(parent.outcomes().values()) for parent in self.parents]
        self.assertGreater(min(shares), 1500 * 0.15)
        self.assertLess(max(shares), 1500 * 0.55)
        self.assertIn("; hit", self.members(self.ask(front, "/kept"))[-1])


if __name__ == "__main__":
    unittest.main()
