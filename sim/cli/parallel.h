// Independent pieces of work on all cores.
#pragma once

#include <cstddef>
#include <functional>

namespace encore::sim {

// Calls work(i) once for each i < count, on up to `threads` threads (0: one a core), in no
// particular order, and returns when all are done. `work` must be safe to call concurrently for
// different i, and must not throw.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work,
                  unsigned threads = 0);

}  // namespace encore::sim
