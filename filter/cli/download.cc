#include "filter/cli/download.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/text.h"

namespace encore::filter {
namespace {

constexpr long kConnectSeconds = 30;
constexpr long kSilentSeconds = 60;
constexpr long kRedirectsMax = 5;
constexpr long kNotModified = 304;
constexpr long kOk = 200;

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// The state of a download.
struct Incoming {
  Download got;
  std::uint64_t bytes_max = 0;
  bool too_large = false;
  Monitor* monitor = nullptr;
};

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  if (size * count > incoming.bytes_max - incoming.got.body.size()) {
    incoming.too_large = true;
    return 0;
  }
  incoming.got.body.append(data, size * count);
  incoming.monitor->done = incoming.got.body.size();
  return size * count;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

// Fields of the last response: those of a redirect do not belong to its target.
std::size_t on_field(char* data, std::size_t size, std::size_t count, void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  const std::string_view line(data, size * count);
  constexpr std::string_view kName = "etag:";
  if (line.starts_with("HTTP/")) {
    incoming.got.etag.clear();
  } else if (lower_ascii(line.substr(0, kName.size())) == kName) {
    incoming.got.etag = trimmed(line.substr(kName.size()));
  }
  return size * count;
}

// The ETag is sent back as it was received; a line break in it would start another field.
bool can_be_sent(std::string_view etag) {
  return std::ranges::all_of(etag, [](char c) { return c >= ' ' && c != '\x7f'; });
}

}  // namespace

Result<Download> download(const DownloadRequest& request, Monitor& monitor) {
  // Once per process, by the first call.
  static const CURLcode kReady = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, FreeEasy> easy(kReady == CURLE_OK ? curl_easy_init() : nullptr);
  if (!easy) {
    return fail("cannot start libcurl");
  }
  monitor.begin("", 0);
  monitor.in_bytes = true;
  Incoming incoming{.got = {}, .bytes_max = request.bytes_max, .monitor = &monitor};
  std::array<char, CURL_ERROR_SIZE> error{};
  std::unique_ptr<curl_slist, FreeList> fields;
  if (!request.etag.empty() && can_be_sent(request.etag)) {
    fields.reset(curl_slist_append(nullptr, ("If-None-Match: " + request.etag).c_str()));
  }
  const auto set = [&](CURLoption option, auto value) {
    curl_easy_setopt(easy.get(), option, value);
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, kRedirectsMax);
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ACCEPT_ENCODING, "");  // all that libcurl can decode
  set(CURLOPT_USERAGENT, "encore-filter/" ENCORE_VERSION);
  set(CURLOPT_HTTPHEADER, fields.get());
  set(CURLOPT_ERRORBUFFER, error.data());
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, &incoming);
  set(CURLOPT_HEADERFUNCTION, on_field);
  set(CURLOPT_HEADERDATA, &incoming);
  const CURLcode done = curl_easy_perform(easy.get());
  if (incoming.too_large) {
    return fail(request.url + ": more than " + std::to_string(request.bytes_max) +
                " bytes, see --limit");
  }
  if (done != CURLE_OK) {
    return fail(request.url + ": " + (error[0] != '\0' ? error.data() : curl_easy_strerror(done)));
  }
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  incoming.got.not_modified = status == kNotModified && fields;
  if (status != kOk && !incoming.got.not_modified) {
    return fail(request.url + ": response with status " + std::to_string(status) +
                ", accepted: 200");
  }
  return std::move(incoming.got);
}

}  // namespace encore::filter
