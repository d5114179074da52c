// Provenance: what a report's page says of the run itself: its command line, the program, the data
// with their digests, the machine. Read once, when a page is written.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "sim/report/report.h"

namespace encore::sim {

// `words`: the command line without the program's name. `files`: those that it reads; pipes and
// standard input have no digest. Reads the regular ones. Errors: one that cannot be read.
Result<Provenance> provenance_of(const std::vector<std::string>& words,
                                 const std::vector<std::string>& files);

// The words as a shell reads them.
std::string shell_line(const std::vector<std::string>& words);

// SHA-256 in hexadecimal digits, as sha256sum prints it. Errors: the file cannot be read.
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace encore::sim
