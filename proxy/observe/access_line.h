// Lines of a format of the operator's own. A pure function, thread-safe.
#pragma once

#include <string>

#include "config/log_format.h"
#include "proxy/observe/access_record.h"
#include "proxy/observe/redaction.h"

namespace encore::server {

// Appends the line, without its newline.
void append_line(std::string& out, const config::LogFormat& format, const AccessRecord& record,
                 const Redaction& redaction);

}  // namespace encore::server
