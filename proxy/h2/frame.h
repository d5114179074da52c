// Frames of HTTP/2 as bytes (RFC 9113 4 and 6): headers, numbers, and the frames that a session
// writes whole. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace encore::h2 {

// The first bytes of a client (RFC 9113 3.4).
inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

using StreamId = std::uint32_t;  // 31 bits; 0: the connection
inline constexpr StreamId kStreamIdMax = 0x7fffffff;

enum class FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
  kPriorityUpdate = 16,  // RFC 9218 7.1
};

inline constexpr std::uint8_t kFlagEndStream = 0x1;  // DATA, HEADERS
inline constexpr std::uint8_t kFlagAck = 0x1;        // SETTINGS, PING
inline constexpr std::uint8_t kFlagEndHeaders = 0x4;
inline constexpr std::uint8_t kFlagPadded = 0x8;
inline constexpr std::uint8_t kFlagPriority = 0x20;

// RFC 9113 7.
enum class ErrorCode : std::uint32_t {
  kNoError = 0,
  kProtocolError = 1,
  kInternalError = 2,
  kFlowControlError = 3,
  kSettingsTimeout = 4,
  kStreamClosed = 5,
  kFrameSizeError = 6,
  kRefusedStream = 7,
  kCancel = 8,
  kCompressionError = 9,
  kConnectError = 10,
  kEnhanceYourCalm = 11,
  kInadequateSecurity = 12,
  kHttp11Required = 13,
};
// The name as the RFC writes it; "UNKNOWN" for a code that it does not have.
std::string_view to_string(ErrorCode code) noexcept;

enum class Setting : std::uint16_t {
  kHeaderTableSize = 1,
  kEnablePush = 2,
  kMaxConcurrentStreams = 3,
  kInitialWindowSize = 4,
  kMaxFrameSize = 5,
  kMaxHeaderListSize = 6,
  kEnableConnectProtocol = 8,  // RFC 8441 3
  kNoRfc7540Priorities = 9,    // RFC 9218 2.1
};

inline constexpr std::size_t kFrameHeaderBytes = 9;
// The largest payload that we take, and that we send: the size that every peer takes.
inline constexpr std::size_t kFrameBytesMax = 16384;
inline constexpr std::size_t kSettingBytes = 6;
inline constexpr std::size_t kPingBytes = 8;
inline constexpr std::int64_t kWindowMax = 0x7fffffff;
// Before a setting or an update says otherwise (RFC 9113 6.9.2).
inline constexpr std::int32_t kInitialWindow = 65535;

struct FrameHeader {
  std::uint32_t length = 0;
  FrameType type = FrameType::kData;  // may be a number that has no name
  std::uint8_t flags = 0;
  StreamId stream = 0;
  bool has(std::uint8_t flag) const noexcept { return (flags & flag) != 0; }
};

std::uint32_t read_u32(const char* bytes) noexcept;
std::uint16_t read_u16(const char* bytes) noexcept;
// The same, without the reserved bit in front.
inline std::uint32_t read_u31(const char* bytes) noexcept { return read_u32(bytes) & 0x7fffffff; }

// REQUIRES: kFrameHeaderBytes at `bytes`.
FrameHeader read_frame_header(const char* bytes) noexcept;
void write_frame_header(const FrameHeader& header, char* bytes) noexcept;

void append_u32(std::uint32_t value, std::string& out);
void append_frame_header(const FrameHeader& header, std::string& out);
void append_rst_stream(StreamId stream, ErrorCode code, std::string& out);
void append_window_update(StreamId stream, std::uint32_t increment, std::string& out);
// REQUIRES: `opaque` of kPingBytes.
void append_ping(std::string_view opaque, std::uint8_t flags, std::string& out);
void append_goaway(StreamId last, ErrorCode code, std::string_view debug, std::string& out);

struct SettingValue {
  Setting setting;
  std::uint32_t value;
};
void append_settings(std::span<const SettingValue> settings, std::string& out);
void append_settings_ack(std::string& out);

// Writes what stands in `out` from `begin` on, a header block behind room for one frame header, as
// HEADERS and, where it is larger than a frame, CONTINUATION frames. REQUIRES: begin + 9 <= size.
void finish_headers(std::size_t begin, StreamId stream, std::uint8_t flags, std::string& out);

}  // namespace encore::h2
