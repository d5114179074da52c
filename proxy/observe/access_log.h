// One record a request, in the format the operator chose (config/log_format.h). Pure formatting,
// thread-safe.
#pragma once

#include <string>

#include "config/log_format.h"
#include "proxy/observe/redaction.h"
#include "proxy/observe/request_record.h"

namespace encore::server {

// Appends the record and a newline. Bytes that the format would misread are escaped (JSON: \u00XX,
// the others: %XX), so that one record is always one line; what is secret is redacted.
void append_access_record(std::string& out, const config::LogFormat& format,
                          const LoggedRequest& request, const Redaction& redaction);

}  // namespace encore::server
