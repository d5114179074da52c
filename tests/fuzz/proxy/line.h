// Line: the origin's end of whatever brings it requests as HTTP/1 writes them, and takes its
// answers: a connection (ChannelLine), or one stream of HTTP/2 (Http2Server). One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tests/fuzz/proxy/channel.h"

namespace encore::proxyfuzz {

class Line {
 public:
  virtual ~Line() = default;
  virtual bool is_open() const = 0;
  // There is a layer between what is sent and its peer: a cut may take with it what came before.
  virtual bool is_secured() const = 0;

  // All below REQUIRE: open, but for close().
  // `events` are epoll's; the handler is called with them.
  virtual void want(std::uint32_t events) = 0;
  // As ::send and ::recv: -1 and errno where nothing was taken or came.
  virtual ssize_t send(std::string_view first, std::string_view second) = 0;
  virtual ssize_t recv(std::span<char> into) = 0;
  // True if the system has all that was sent, and the end behind it.
  virtual bool say_end() = 0;
  virtual bool has_sent_all() const = 0;
  using Close = Channel::Close;
  virtual void close(Close how) = 0;

  // See loop.h.
  virtual bool was_heard() const = 0;
  virtual bool had_read_all() const = 0;
  // Returns what was wrong with what came; empty: nothing.
  virtual std::string fault() const = 0;
};

class ChannelLine final : public Line {
 public:
  // The channel is open.
  explicit ChannelLine(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}
  bool is_open() const override { return channel_->is_open(); }
  bool is_secured() const override { return channel_->is_secured(); }
  void want(std::uint32_t events) override { channel_->want(events); }
  ssize_t send(std::string_view first, std::string_view second) override {
    return channel_->send(first, second);
  }
  ssize_t recv(std::span<char> into) override { return channel_->recv(into); }
  bool say_end() override { return channel_->say_end(); }
  bool has_sent_all() const override { return channel_->has_sent_all(); }
  void close(Close how) override { channel_->close(how); }
  bool was_heard() const override { return channel_->was_heard(); }
  bool had_read_all() const override { return channel_->had_read_all(); }
  std::string fault() const override { return channel_->fault(); }

 private:
  std::unique_ptr<Channel> channel_;
};

}  // namespace encore::proxyfuzz
