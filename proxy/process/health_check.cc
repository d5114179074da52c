#include "proxy/process/health_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "proxy/http/interim.h"
#include "proxy/http/parser.h"
#include "proxy/observe/log.h"

namespace encore::server {
namespace {

// A head longer than this is not that of a server that is well.
constexpr std::size_t kHeadBytesMax = 32 * 1024;

std::string host_of(const config::Origin& origin, const OriginServer& server) {
  if (!origin.host_header_value.empty()) return origin.host_header_value;
  const bool is_name = !origin.host.starts_with('*');
  const bool preserves = origin.host_header == config::HostHeader::kPreserve;
  return preserves && is_name ? origin.host : server.authority;
}

}  // namespace

std::string health_request(const config::Origin& origin, const OriginServer& server) {
  return fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: encore-health\r\nConnection: close\r\n\r\n",
      origin.health_path, host_of(origin, server));
}

bool is_healthy(const config::Origin& origin, int status) {
  if (origin.health_status.empty()) return status >= 200 && status < 400;
  return std::ranges::find(origin.health_status, static_cast<std::uint64_t>(status)) !=
         origin.health_status.end();
}

HealthCheck::HealthCheck(const Parts& parts)
    : parts_(parts),
      request_(health_request(parts.origin, parts.server)),
      count_({.down = parts.origin.health_down, .up = parts.origin.health_up}, parts.is_down),
      next_(parts.loop, [this] { begin(); }),
      limit_(parts.loop, [this] { end(false, "timeout"); }) {
  next_.start(Nanoseconds::zero());
}

void HealthCheck::begin() {
  sent_ = 0;
  parts_.stats.health_checks.add();
  limit_.start(parts_.origin.health_timeout);
  if (!parts_.server.socket_file.empty()) {
    connect({net::Address::loopback_v4(0)});
    return;
  }
  query_ =
      parts_.resolver.resolve({.host = parts_.server.host, .port = parts_.server.port},
                              [this](std::expected<net::Resolved, net::ResolveFailure> result) {
                                on_resolved(std::move(result));
                              });
}

void HealthCheck::on_resolved(std::expected<net::Resolved, net::ResolveFailure> result) {
  const auto query = std::move(query_);  // ends when this call does
  if (!result) {
    end(false, "its name has no address");
    return;
  }
  connect(std::move(result->addresses));
}

void HealthCheck::connect(std::vector<net::Address> addresses) {
  net::Connector::Options options;
  options.addresses = std::move(addresses);
  options.socket_file = parts_.server.socket_file;
  options.timeout = parts_.origin.health_timeout;
  options.tls = parts_.server.tls;
  options.tls_host = parts_.server.tls_name;
  connector_ = std::make_unique<net::Connector>(
      parts_.loop, std::move(options),
      [this](std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> connected) {
        on_connected(std::move(connected));
      });
}

void HealthCheck::on_connected(
    std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> result) {
  const auto connector = std::move(connector_);  // ends when this call does
  if (!result) {
    end(false, result.error().message);
    return;
  }
  stream_ = std::move(*result);
  const bool is_http2 =
      parts_.server.http2 && (!stream_->is_tls() || stream_->tls_facts().alpn == "h2");
  if (is_http2) http2_ = std::make_unique<HealthHttp2>(*stream_, request_);
  stream_->set_handler(this);
  stream_->resume_reading();
  write();
}

void HealthCheck::write() {
  if (http2_ != nullptr) {
    if (!http2_->write()) end(false, "the connection ends");
    return;
  }
  const net::WriteResult result = stream_->write(std::string_view(request_).substr(sent_));
  sent_ += result.bytes;
  if (result.status == net::WriteStatus::kError) end(false, "the connection ends");
}

void HealthCheck::on_writable(net::Stream&) { write(); }

std::size_t HealthCheck::on_data(net::Stream&, std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (http2_ != nullptr) return on_http2(text);
  const http::Limits limits = {.head_bytes_max = kHeadBytesMax};
  std::size_t interim_bytes = 0;
  while (true) {
    http::ResponseHead head;
    http::ParseError error;
    switch (http::parse_response(text, limits, head, error)) {
      case http::ParseStatus::kIncomplete:
        return interim_bytes;
      case http::ParseStatus::kBad:
        end(false, "invalid response");
        return bytes.size();
      case http::ParseStatus::kComplete:
        break;
    }
    if (!http::is_interim(head.status)) {
      end(is_healthy(parts_.origin, head.status), fmt::format("status {}", head.status));
      return bytes.size();
    }
    interim_bytes += head.head_size;
    text.remove_prefix(head.head_size);
  }
}

std::size_t HealthCheck::on_http2(std::string_view bytes) {
  const std::size_t used = http2_->receive(bytes);
  if (http2_->has_failed()) {
    end(false, "invalid response");
    return bytes.size();
  }
  if (const int status = static_cast<int>(http2_->status()); status != 0) {
    end(is_healthy(parts_.origin, status), fmt::format("status {}", status));
    return bytes.size();
  }
  write();
  return used;
}

void HealthCheck::on_eof(net::Stream&) { end(false, "the connection ends"); }

void HealthCheck::on_error(net::Stream&, net::CloseReason, int) {
  end(false, "the connection ends");
}

void HealthCheck::end(bool is_good, std::string_view why) {
  limit_.cancel();
  query_.reset();
  connector_.reset();
  http2_.reset();
  stream_.reset();
  next_.start(parts_.origin.health_interval);
  if (!is_good) parts_.stats.health_failures.add();
  const auto change = count_.note(is_good);
  if (!change) return;
  const bool is_down = *change == CheckCount::Change::kDown;
  (void)parts_.group.set_down(parts_.server, is_down, parts_.loop.now());
  if (is_down) {
    log::warn("origin {}: down: {}: {}", parts_.server.url, parts_.origin.health_path, why);
  } else {
    log::info("origin {}: up again", parts_.server.url);
  }
}

}  // namespace encore::server
