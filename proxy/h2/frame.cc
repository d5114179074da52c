#include "proxy/h2/frame.h"

#include <algorithm>
#include <array>

namespace encore::h2 {
namespace {

constexpr std::array<std::string_view, 14> kErrorNames = {"NO_ERROR",
                                                          "PROTOCOL_ERROR",
                                                          "INTERNAL_ERROR",
                                                          "FLOW_CONTROL_ERROR",
                                                          "SETTINGS_TIMEOUT",
                                                          "STREAM_CLOSED",
                                                          "FRAME_SIZE_ERROR",
                                                          "REFUSED_STREAM",
                                                          "CANCEL",
                                                          "COMPRESSION_ERROR",
                                                          "CONNECT_ERROR",
                                                          "ENHANCE_YOUR_CALM",
                                                          "INADEQUATE_SECURITY",
                                                          "HTTP_1_1_REQUIRED"};

void write_u32(std::uint32_t value, char* bytes) noexcept {
  for (int i = 3; i >= 0; --i, value >>= 8U) bytes[i] = static_cast<char>(value & 0xffU);
}

std::uint32_t byte_at(const char* bytes, std::size_t at) noexcept {
  return static_cast<unsigned char>(bytes[at]);
}

}  // namespace

std::string_view to_string(ErrorCode code) noexcept {
  const auto number = static_cast<std::size_t>(code);
  return number < kErrorNames.size() ? kErrorNames[number] : "UNKNOWN";
}

std::uint32_t read_u32(const char* bytes) noexcept {
  return byte_at(bytes, 0) << 24U | byte_at(bytes, 1) << 16U | byte_at(bytes, 2) << 8U |
         byte_at(bytes, 3);
}

std::uint16_t read_u16(const char* bytes) noexcept {
  return static_cast<std::uint16_t>(byte_at(bytes, 0) << 8U | byte_at(bytes, 1));
}

FrameHeader read_frame_header(const char* bytes) noexcept {
  return {.length = read_u32(bytes) >> 8U,
          .type = static_cast<FrameType>(bytes[3]),
          .flags = static_cast<std::uint8_t>(bytes[4]),
          .stream = read_u31(bytes + 5)};
}

void write_frame_header(const FrameHeader& header, char* bytes) noexcept {
  write_u32(header.length << 8U | static_cast<std::uint32_t>(header.type), bytes);
  bytes[4] = static_cast<char>(header.flags);
  write_u32(header.stream, bytes + 5);
}

void append_u32(std::uint32_t value, std::string& out) {
  char bytes[4];
  write_u32(value, bytes);
  out.append(bytes, sizeof bytes);
}

void append_frame_header(const FrameHeader& header, std::string& out) {
  char bytes[kFrameHeaderBytes];
  write_frame_header(header, bytes);
  out.append(bytes, sizeof bytes);
}

void append_rst_stream(StreamId stream, ErrorCode code, std::string& out) {
  append_frame_header({.length = 4, .type = FrameType::kRstStream, .stream = stream}, out);
  append_u32(static_cast<std::uint32_t>(code), out);
}

void append_window_update(StreamId stream, std::uint32_t increment, std::string& out) {
  append_frame_header({.length = 4, .type = FrameType::kWindowUpdate, .stream = stream}, out);
  append_u32(increment, out);
}

void append_ping(std::string_view opaque, std::uint8_t flags, std::string& out) {
  append_frame_header({.length = kPingBytes, .type = FrameType::kPing, .flags = flags}, out);
  out += opaque;
}

void append_goaway(StreamId last, ErrorCode code, std::string_view debug, std::string& out) {
  append_frame_header(
      {.length = static_cast<std::uint32_t>(8 + debug.size()), .type = FrameType::kGoAway}, out);
  append_u32(last, out);
  append_u32(static_cast<std::uint32_t>(code), out);
  out += debug;
}

void append_settings(std::span<const SettingValue> settings, std::string& out) {
  append_frame_header({.length = static_cast<std::uint32_t>(settings.size() * kSettingBytes),
                       .type = FrameType::kSettings},
                      out);
  for (const SettingValue& each : settings) {
    const auto id = static_cast<std::uint16_t>(each.setting);
    out += static_cast<char>(id >> 8U);
    out += static_cast<char>(id & 0xffU);
    append_u32(each.value, out);
  }
}

void append_settings_ack(std::string& out) {
  append_frame_header({.type = FrameType::kSettings, .flags = kFlagAck}, out);
}

void finish_headers(std::size_t begin, StreamId stream, std::uint8_t flags, std::string& out) {
  const std::size_t size = out.size() - begin - kFrameHeaderBytes;
  FrameHeader header = {.length = static_cast<std::uint32_t>(std::min(size, kFrameBytesMax)),
                        .type = FrameType::kHeaders,
                        .flags = flags,
                        .stream = stream};
  if (size <= kFrameBytesMax) header.flags |= kFlagEndHeaders;
  write_frame_header(header, out.data() + begin);
  if (size <= kFrameBytesMax) return;
  const std::string rest = out.substr(begin + kFrameHeaderBytes + kFrameBytesMax);
  out.resize(begin + kFrameHeaderBytes + kFrameBytesMax);
  for (std::size_t at = 0; at < rest.size(); at += kFrameBytesMax) {
    const std::size_t part = std::min(rest.size() - at, kFrameBytesMax);
    const bool is_last = at + part == rest.size();
    append_frame_header({.length = static_cast<std::uint32_t>(part),
                         .type = FrameType::kContinuation,
                         .flags = is_last ? kFlagEndHeaders : std::uint8_t{0},
                         .stream = stream},
                        out);
    out.append(rest, at, part);
  }
}

}  // namespace encore::h2
