"""Bloom filters on NumPy arrays of numbers, and on lists of bytes and strings."""

import numpy as np

from . import _core


def _keys(keys):
    """(keys as the core takes them, whether it was one key)."""
    if isinstance(keys, (bytes, str)):
        return [keys], True
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "SUO":
        return keys.tolist(), False
    if isinstance(keys, (list, tuple)) and (not keys or isinstance(keys[0], (bytes, str))):
        return keys, False
    array = np.asarray(keys)
    if array.dtype.kind not in "ui" or (array.size and int(array.min()) < 0):
        raise ValueError(f"keys of type {array.dtype}, accepted: uint64, or bytes and str")
    array = array.astype(np.uint64, copy=False)
    return (array.reshape(1), True) if array.ndim == 0 else (array, False)


def _answer(answers, single):
    return bool(answers[0]) if single else answers


class _Filter:
    """Keys are an array of uint64, a list of bytes or str, or one key; answers are bool likewise.

    A number's key is its eight bytes, little-endian. The lock is held: a filter is safe to share.
    """

    def contains(self, keys):
        """True for each key that may be in the filter, False for one that certainly is not."""
        keys, single = _keys(keys)
        return _answer(self._core.contains(keys), single)

    def __contains__(self, key):
        return bool(self.contains(key))

    def info(self):
        """Size, fill and rates, as a dict. Reads the whole filter."""
        return self._core.info()


class BloomFilter(_Filter):
    """A Bloom filter for `capacity` keys with a false-positive rate of `fpr`, or of so many `bits`.

    `kind`: plain, scalable (any number of keys), growable, counting (can forget). `hashes` 0: the best.
    """

    def __init__(self, capacity=0, fpr=0.01, bits=0, hashes=0, layout="classic", hash="xxh3", kind="plain", seed=0):
        self._core = _core.BloomFilter(kind, capacity, fpr, bits, hashes, layout, hash, seed)

    def add(self, keys):
        """Inserts the keys; True for each that was new."""
        keys, single = _keys(keys)
        return _answer(self._core.add(keys), single)

    def remove(self, keys):
        """Removes the keys from a counting filter; True for each that was there."""
        keys, single = _keys(keys)
        return _answer(self._core.remove(keys), single)

    def save(self):
        """The filter as bytes, in the form of encore-filter."""
        return self._core.save()

    @classmethod
    def load(cls, saved):
        """The filter of bytes that `save` or encore-filter has written."""
        loaded = cls.__new__(cls)
        loaded._core = _core.BloomFilter.load(saved)
        return loaded


class RotatingBloomFilter(_Filter):
    """The rotating filter of second-hit admission: it remembers the last insertions, and forgets older ones.

    When the current generation has taken `capacity` insertions, or after `rotate_after` seconds, the
    oldest one is emptied and becomes the current one. `fpr` is the worst rate of a cycle.
    """

    def __init__(self, capacity, fpr=0.01, bits=0, hashes=0, layout="split", hash="xxh3", generations=2,
                 refresh=True, rotate_after=0.0, seed=0):
        self._core = _core.RotatingBloomFilter(capacity, fpr, bits, hashes, layout, hash, generations, refresh,
                                               rotate_after, seed)

    def add(self, keys, now=0.0):
        """Inserts the keys at the time `now` in seconds; True for each that was not remembered."""
        keys, single = _keys(keys)
        return _answer(self._core.add(keys, now), single)

    def rotate(self, now=0.0):
        """Begins a generation."""
        self._core.rotate(now)
