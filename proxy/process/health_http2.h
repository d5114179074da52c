// HealthHttp2: the health check of a server that speaks HTTP/2: one request and the status of its
// response, as bytes. Confined to its worker.
#pragma once

#include <string_view>

#include "proxy/h2/client_session.h"
#include "proxy/net/stream.h"

namespace encore::server {

class HealthHttp2 final : private h2::ClientHandler, private h2::StreamHandler {
 public:
  // `request`: as HTTP/1.1 writes it. `stream` is borrowed.
  HealthHttp2(net::Stream& stream, std::string_view request);
  HealthHttp2(const HealthHttp2&) = delete;
  HealthHttp2& operator=(const HealthHttp2&) = delete;

  // Bytes have come; returns how many were used.
  std::size_t receive(std::string_view bytes);
  // Writes what the stream takes. False where that has ended.
  [[nodiscard]] bool write();
  // Returns the status of the final response; 0: none has come.
  unsigned status() const { return status_; }
  // None will come.
  bool has_failed() const { return has_failed_; }

 private:
  // h2::ClientHandler
  void on_interim(h2::StreamId, const h2::Response&) override {}
  void on_response(h2::StreamId, const h2::Response& response) override {
    status_ = response.status;
  }
  void on_connection_end(const h2::ConnectionEnd&) override { has_failed_ = true; }
  // h2::StreamHandler
  void on_content(h2::StreamId stream, std::string_view bytes) override {
    session_.consume(stream, bytes.size());
  }
  void on_content_end(h2::StreamId, std::string_view) override {}
  void on_writable(h2::StreamId) override {}
  void on_gone(h2::StreamId, h2::ErrorCode) override { has_failed_ = true; }

  net::Stream& stream_;
  h2::Counters counters_;
  h2::ClientSession session_;
  unsigned status_ = 0;
  bool has_failed_ = false;
};

}  // namespace encore::server
