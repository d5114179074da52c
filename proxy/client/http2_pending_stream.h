// Http2PendingStream: a stream whose login is being checked, or whose work may be followed by
// another. It keeps the request and what comes of its content; once there is work, it passes every
// event on to that, for the session knows no other. Confined to its worker.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "proxy/client/http2_responder.h"

namespace encore::server {

class Http2PendingStream final : public Http2Responder {
 public:
  Http2PendingStream(Http2Carrier& carrier, h2::StreamId id, std::string text)
      : Http2Responder(carrier, id), text_(std::move(text)) {}

  std::string& text() { return text_; }
  bool is_gone() const { return is_gone_; }
  // Takes the check of its login from `identity`, and brings it back there once it is done.
  void take_logins(ClientIdentity& identity) {
    logins_ = identity.take_logins([this] { carrier_.on_login(*this); });
  }
  void bring_logins(ClientIdentity& identity) { identity.bring_logins(std::move(logins_)); }
  // Null: it has been answered, or the stream is gone.
  void set_work(Http2Responder* work);

  // Http2Responder
  void resume() override {
    if (work_ != nullptr) work_->resume();
  }
  void cut() override {}
  void end_by(const ClientGone& why) override;
  // h2::StreamHandler
  void on_content(h2::StreamId stream, std::string_view bytes) override;
  void on_content_end(h2::StreamId stream, std::string_view trailers) override;
  void on_writable(h2::StreamId stream) override;
  void on_gone(h2::StreamId stream, h2::ErrorCode code) override;

 private:
  const net::Address& client() const override { return carrier_.identity().client(); }

  std::string text_;
  std::string content_;
  std::string trailers_;
  std::unique_ptr<LoginCheck> logins_;  // null: nothing is checked
  Http2Responder* work_ = nullptr;      // null: there is none yet
  bool has_ended_ = false;              // the content
  bool is_gone_ = false;
};

}  // namespace encore::server
