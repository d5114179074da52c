// A client of HTTP/2 that has asked a forward listener for tunnels (http2_client.h), and parts of
// the answers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tests/client/http2_client.h"

namespace encore::server {

inline std::string local_target(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

// A CONNECT whose client may say more.
inline std::string connect_frame(h2::StreamId stream, std::uint16_t port,
                                 const h2::test::FieldList& more = {}) {
  h2::test::FieldList fields = {{":method", "CONNECT"}, {":authority", local_target(port)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return h2::test::headers(stream, fields, false);
}

// The code that the proxy has reset the stream with. REQUIRES: it has.
inline h2::ErrorCode reset_code(Http2Client& client, h2::StreamId stream) {
  const auto& frames = client.frames();
  const auto found = std::ranges::find_if(frames, [&](const h2::test::SentFrame& each) {
    return each.header.stream == stream && each.header.type == h2::FrameType::kRstStream;
  });
  REQUIRE(found != frames.end());
  return found->code();
}

// By how much the proxy has opened the stream's window.
inline std::uint64_t window_opened(Http2Client& client, h2::StreamId stream) {
  std::uint64_t sum = 0;
  for (const auto& each : client.frames()) {
    if (each.header.stream != stream || each.header.type != h2::FrameType::kWindowUpdate) continue;
    sum += h2::read_u32(each.payload.data());
  }
  return sum;
}

// Says much, in frames that are taken as they come.
inline void say_data(ClientWorld& world, Http2Client& client, h2::StreamId stream,
                     std::string_view bytes) {
  constexpr std::size_t kFrameBytes = 16 * 1024;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kFrameBytes, bytes.size()))) {
    client.say(h2::test::data(stream, bytes.substr(0, kFrameBytes)));
    world.run_turns(2);
  }
}

// A tunnel in stream 1 that has its 200.
struct Http2Tunnelled {
  explicit Http2Tunnelled(const std::function<void(config::Config&)>& change = {},
                          std::string_view greeting = {})
      : world(config::Mode::kForward, change), client(world) {
    world.keep_records();
    client.greet(greeting);
    world.run_until([&] { return !client.frames().empty(); });
    opened_after = world.world.loop->now();
    client.say(connect_frame(1, world.origin.port()));
    world.run_until([&] { return client.status(1) == "200" && world.origin.accepted == 1; });
  }
  WorkerStats& stats() { return world.world.stats; }
  // The last of the tunnel is its record.
  void check_over() {
    world.run_turns(3);
    CHECK(world.records() == 1);
    CHECK(stats().tunnels.get() == 1);
    CHECK(stats().tunnels_open.get() == 0);
    CHECK(stats().http2_streams_open.get() == 0);
    CHECK(world.transfer_memory.bytes() == 0);
    CHECK(client.connection().may_be_given_up());
    CHECK_FALSE(client.is_over());
  }

  ClientWorld world;
  Http2Client client;
  MonotonicTime opened_after;  // the clock did not show less when it was opened
};

}  // namespace encore::server
