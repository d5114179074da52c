// A client of HTTP/2 in front of the rooms of a worker (client_world.h): sends frames that the test
// writes, and reads those of the proxy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/h2/field_decoder.h"
#include "proxy/h2/frame.h"
#include "tests/client/client_world.h"
#include "tests/h2/peer.h"

namespace encore::server {

class Http2Client final : public Client {
 public:
  using Client::Client;
  ~Http2Client() {
    look();
    std::uint64_t bytes = 0;
    std::size_t at = 0;
    while (heard.size() - at >= h2::kFrameHeaderBytes) {
      const h2::FrameHeader header = h2::read_frame_header(heard.data() + at);
      const std::size_t size = h2::kFrameHeaderBytes + header.length;
      if (header.type == h2::FrameType::kHeaders || header.type == h2::FrameType::kData) {
        bytes += std::min(size, heard.size() - at);
      }
      at += std::min(size, heard.size() - at);
    }
    world().hear_frames(bytes, reads && is_there() && !was_reset && at == heard.size());
  }

  // Says hello, and as much more.
  void greet(std::string_view more = {}) { say(h2::test::hello() + std::string(more)); }
  void ask(h2::StreamId stream, std::string_view path, const h2::test::FieldList& more = {}) {
    say(h2::test::headers(stream, h2::test::get(path, more)));
  }

  // All that has come, in whole frames.
  const std::vector<h2::test::SentFrame>& frames() {
    while (heard.size() - parsed_ >= h2::kFrameHeaderBytes) {
      const h2::FrameHeader header = h2::read_frame_header(heard.data() + parsed_);
      const std::size_t size = h2::kFrameHeaderBytes + header.length;
      if (heard.size() - parsed_ < size) break;
      h2::test::SentFrame frame = {
          header, heard.substr(parsed_ + h2::kFrameHeaderBytes, header.length), {}};
      parsed_ += size;
      if (header.type == h2::FrameType::kHeaders) {
        Fields fields;
        REQUIRE(decoder_.decode(frame.payload, header.has(h2::kFlagEndHeaders), fields) ==
                h2::FieldDecoder::Status::kEnd);
        frame.fields = std::move(fields.list);
      }
      frames_.push_back(std::move(frame));
    }
    return frames_;
  }
  std::string content(h2::StreamId stream) {
    std::string bytes;
    for (const auto& each : frames()) {
      if (each.header.stream == stream && each.header.type == h2::FrameType::kData) {
        bytes += each.payload;
      }
    }
    return bytes;
  }
  std::string status(h2::StreamId stream) {
    for (const auto& each : frames()) {
      if (each.header.stream == stream && !each.fields.empty()) return each.fields.front().second;
    }
    return {};
  }
  // Returns the bytes of the frames that the stream's response is made of.
  std::uint64_t bytes_of(h2::StreamId stream) {
    std::uint64_t bytes = 0;
    for (const auto& each : frames()) {
      const h2::FrameType type = each.header.type;
      if (each.header.stream != stream) continue;
      if (type != h2::FrameType::kHeaders && type != h2::FrameType::kData) continue;
      bytes += h2::kFrameHeaderBytes + each.header.length;
    }
    return bytes;
  }
  // The response is whole.
  bool has_end(h2::StreamId stream) {
    return has([&](const h2::test::SentFrame& each) {
      const bool may_end =
          each.header.type == h2::FrameType::kData || each.header.type == h2::FrameType::kHeaders;
      return may_end && each.header.stream == stream && each.header.has(h2::kFlagEndStream);
    });
  }
  bool was_stream_reset(h2::StreamId stream) {
    return has([&](const h2::test::SentFrame& each) {
      return each.header.stream == stream && each.header.type == h2::FrameType::kRstStream;
    });
  }

 private:
  struct Fields final : h2::FieldSink {
    bool on_field(std::string_view name, std::string_view value) override {
      list.emplace_back(name, value);
      return true;
    }
    h2::test::FieldList list;
  };
  template <typename Test>
  bool has(Test test) {
    for (const auto& each : frames()) {
      if (test(each)) return true;
    }
    return false;
  }

  std::size_t parsed_ = 0;
  h2::FieldDecoder decoder_;
  std::vector<h2::test::SentFrame> frames_;
};

}  // namespace encore::server
