// Lines of a format of the operator's own. A pure function, thread-safe.
#pragma once

#include <string>

#include "config/log_format.h"
#include "proxy/observe/redaction.h"
#include "proxy/observe/request_record.h"

namespace encore::server {

// Appends the line, without its newline.
void append_line(std::string& out, const config::LogFormat& format, const LoggedRequest& request,
                 const Redaction& redaction);

}  // namespace encore::server
