"""Filters by digests, computed again with Python's hashlib: every bit must be the same."""

import hashlib
import random
import unittest

from encore_filter import EncoreFilter
from harness import Case

CHOICE = random.Random(7)


def fields(digest, key, bits, hashes, width=None):
    """The first fields of the digest as one big number, from its most significant bit on."""
    width = width or max(1, (bits - 1).bit_length())
    number = int(hashlib.new(digest, key).hexdigest(), 16)
    size = 8 * hashlib.new(digest).digest_size
    return [(number >> (size - width * (i + 1))) % 2 ** width % bits for i in range(hashes)]


def numbered(digest, key, bits, hashes):
    """Digests of the decimal number and the key, each as one big number."""
    return [int(hashlib.new(digest, str(i).encode() + key).hexdigest(), 16) % bits
            for i in range(hashes)]


# Name -> positions of a key in so many bits, by so many hashes.
FAMILIES = {f"{digest}-fields": lambda k, m, h, digest=digest: fields(digest, k, m, h)
            for digest in ("md5", "sha1", "sha256")}
FAMILIES |= {f"{digest}-numbered": lambda k, m, h, digest=digest: numbered(digest, k, m, h)
             for digest in ("md5", "sha1", "sha256")}
FAMILIES["sha256-fields32"] = lambda k, m, h: fields("sha256", k, m, h, 32)
FAMILIES["sha1-fields20"] = lambda k, m, h: fields("sha1", k, m, h, 20)


class PublishedHashes(Case):
    def setUp(self):
        super().setUp()
        self.filter = EncoreFilter(self)

    def raw_bits(self, name, keys, bits, hashes):
        self.filter.run("build", "--hash", name, "--bits", bits, "--hashes", hashes, "-0", "-o", "f",
                        keys=b"".join(key + b"\0" for key in keys))
        self.filter.run("convert", "f", "--to", "raw", "-o", "raw")
        return int.from_bytes((self.directory / "raw").read_bytes(), "little")

    def test_every_bit_is_that_of_hashlib(self):
        for name, positions in FAMILIES.items():
            for bits, hashes in ((1, 1), (2, 8), (16, 3), (1000, 8), (30_000, 7), (65_536, 8),
                                 (800_000, 6)):
                keys = [CHOICE.randbytes(CHOICE.randrange(0, 90)).replace(b"\0", b"0")
                        for _ in range(20)]
                with self.subTest(name, bits=bits, hashes=hashes):
                    expected = 0
                    for key in keys:
                        for position in positions(key, bits, hashes):
                            expected |= 1 << position
                    self.assertEqual(expected, self.raw_bits(name, keys, bits, hashes))

    def test_the_example_of_the_lecture(self):
        keys = ["7217", "4568", "1569", "423"]
        self.assertEqual(["292", "bcf", "655", "faa"],
                         [hashlib.md5(key.encode()).hexdigest()[:3] for key in keys])
        self.assertEqual(0x9e64, self.raw_bits("md5-fields", [key.encode() for key in keys], 16, 3))


if __name__ == "__main__":
    unittest.main()
