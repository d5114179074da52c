"""Theory of Bloom filters (filter/theory.h in Encore's source): functions of numbers and arrays.

Symbols: `bits` m, `hashes` k, `keys` n distinct keys inserted. Layouts: classic, partitioned, blocked,
split. Arrays broadcast as NumPy's do.

- fpr(bits, hashes, keys, layout="classic"): the formula, (1 - (1 - 1/m)^(kn))^k for classic.
- fpr_exponential(bits, hashes, keys): (1 - e^(-kn/m))^k.
- fpr_exact(bits, hashes, keys): the expectation itself (Bose et al. 2008); nan if it would take longer than
  a second.
- fpr_incremental(bits, hashes, keys, layout="classic"): the mean over the fill from 0 to `keys`.
- set_bits(bits, hashes, keys, layout="classic"): the expected number of set bits.
- capacity_for(bits, hashes, fpr, layout="classic"): the most keys within a false-positive rate.
- ring_fpr(bits, hashes, capacity, insertions, layout="split", generations=2, refresh=True): a rotating
  filter with full older generations and `insertions` into the current one; an upper bound.
- ring_cycle(bits, hashes, capacity, layout="split", generations=2, refresh=True): the lowest, mean and
  highest rate of its cycle.
- size(keys, fpr, layout="classic", hashes=0): bits, hashes and rate of the smallest filter.
- size_ring(capacity, fpr, layout="split", generations=2, hashes=0, refresh=True): the same of one
  generation of a rotating filter.
- wilson_interval(hits, trials, z=1.96): (low, high) of a measured rate.
"""

from ._core.theory import (capacity_for, fpr, fpr_exact, fpr_exponential, fpr_incremental, ring_cycle, ring_fpr,
                           set_bits, size, size_ring, wilson_interval)

__all__ = ["capacity_for", "fpr", "fpr_exact", "fpr_exponential", "fpr_incremental", "ring_cycle", "ring_fpr",
           "set_bits", "size", "size_ring", "wilson_interval"]
