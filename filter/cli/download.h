// One conditional GET, by libcurl: http and https, redirects, content codings, the environment's
// proxy. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/cli/monitor.h"
#include "base/error.h"

namespace encore::filter {

struct DownloadRequest {
  std::string url;
  std::string etag;  // sent in If-None-Match; empty: asked without a condition
  std::uint64_t bytes_max = 0;
};

struct Download {
  bool not_modified = false;
  std::string body;  // decoded
  std::string etag;  // empty: there was none
};

// Errors show the URL: no connection, another status than 200 (or, with an ETag, 304), more bytes
// than the limit, a body that ends early; a server that is silent for a minute.
Result<Download> download(const DownloadRequest& request, Monitor& monitor);

}  // namespace encore::filter
