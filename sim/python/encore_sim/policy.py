"""Eviction policies written in Python, for `encore_sim.replay`."""


class Policy:
    """An eviction policy of your own: derive from it, and give the class to `replay(eviction=...)`.

    The cache around it looks objects up, counts, and keeps to its capacity; the policy says which object
    leaves. Objects are numbers from 0, in the order in which the trace first requests them. `size` is in
    bytes, `time_ns` is the trace's. An exception ends the replay, and is raised by it.

        class Fifo(encore_sim.Policy):
            def __init__(self, capacity):
                self.queue = collections.deque()
            def insert(self, object, size, time_ns):
                self.queue.append(object)
            def evict(self):
                return self.queue.popleft()
            def remove(self, object):
                self.queue.remove(object)
    """

    def __init__(self, capacity):
        """A cache of so many bytes begins, empty."""

    def hit(self, object, size, time_ns):
        """The object was requested, and is in the cache."""

    def admit(self, object, size, time_ns):
        """True if an object that was requested, and is not in the cache, shall be stored."""
        return True

    def insert(self, object, size, time_ns):
        """The object is stored now."""

    def evict(self):
        """Choose an object that is in the cache, forget it, and return it: it leaves."""
        raise NotImplementedError(f"{type(self).__name__}.evict()")

    def remove(self, object):
        """The object leaves for another reason than evict(): it has grown too large."""
        raise NotImplementedError(f"{type(self).__name__}.remove()")
