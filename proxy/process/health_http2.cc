#include "proxy/process/health_http2.h"

#include <array>
#include <span>

namespace encore::server {

HealthHttp2::HealthHttp2(net::Stream& stream, std::string_view request)
    : stream_(stream), session_(h2::Options{}, counters_, *this) {
  const h2::ClientSession::Asked asked = {.head = request,
                                          .scheme = stream.is_tls() ? "https" : "http"};
  h2::StreamHandler& handler = *this;
  has_failed_ = session_.request(asked, handler) == 0;
}

std::size_t HealthHttp2::receive(std::string_view bytes) {
  return session_.receive(bytes, stream_.loop().now());
}

bool HealthHttp2::write() {
  while (session_.has_output()) {
    std::array<iovec, 2 * h2::Output::kPartsMin> parts;
    const h2::Batch batch = session_.gather(parts, h2::kFrameBytesMax);
    net::WriteResult result;
    if (batch.parts != 0) result = stream_.write(std::span(parts).first(batch.parts));
    session_.sent(result.bytes, stream_.loop().now());
    if (result.status != net::WriteStatus::kAll) return result.status != net::WriteStatus::kError;
  }
  return true;
}

}  // namespace encore::server
