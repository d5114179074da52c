// Processor time, user and system: what else runs on the machine does not count. Thread-safe.
#pragma once

namespace encore {

// In seconds, of the calling thread since its start.
double thread_cpu_seconds();
// In seconds, of all threads that the process has and had.
double process_cpu_seconds();

}  // namespace encore
