#include "proxy/upgrade/message.h"

#include <algorithm>
#include <charconv>

namespace encore::upgrade {
namespace {

// Length, type, version.
constexpr std::size_t kHeadBytes = 8;
// Number, length.
constexpr std::size_t kFieldHeadBytes = 6;

// Both processes run on one machine; the order of bytes is fixed all the same, for dumps.
void put(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    constexpr std::uint64_t kByte = 0xFF;
    out.push_back(static_cast<char>((value >> (8 * i)) & kByte));
  }
}

std::uint64_t take(std::string_view& from, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(from[i])) << (8 * i);
  }
  from.remove_prefix(bytes);
  return value;
}

}  // namespace

const std::string* Message::find(Field field) const {
  const auto found = std::ranges::find(fields, field, &std::pair<Field, std::string>::first);
  return found == fields.end() ? nullptr : &found->second;
}

std::optional<std::uint64_t> Message::number(Field field) const {
  const std::string* const digits = find(field);
  if (digits == nullptr) return std::nullopt;
  std::uint64_t value = 0;
  const char* const end = digits->data() + digits->size();
  const auto [stop, status] = std::from_chars(digits->data(), end, value);
  if (status != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::string_view Message::text(Field field) const {
  const std::string* const found = find(field);
  return found == nullptr ? std::string_view() : *found;
}

std::string encode(const Message& message) {
  std::string body;
  for (const auto& [field, value] : message.fields) {
    put(body, static_cast<std::uint16_t>(field), 2);
    put(body, value.size(), 4);
    body += value;
  }
  std::string out;
  put(out, kHeadBytes + body.size(), 4);
  put(out, static_cast<std::uint16_t>(message.type), 2);
  put(out, message.version, 2);
  out += body;
  return out;
}

Result<Message> decode(std::string_view bytes, std::size_t bytes_max) {
  const std::size_t all = bytes.size();
  if (all < kHeadBytes || all > bytes_max) {
    return fail("a message of an upgrade has " + std::to_string(all) + " bytes");
  }
  const std::uint64_t length = take(bytes, 4);
  if (length != all) {
    return fail("a message of an upgrade has " + std::to_string(all) + " bytes and says " +
                std::to_string(length));
  }
  Message message;
  message.type = static_cast<MessageType>(take(bytes, 2));
  message.version = static_cast<std::uint16_t>(take(bytes, 2));
  while (!bytes.empty()) {
    if (bytes.size() < kFieldHeadBytes) return fail("a message of an upgrade has a broken field");
    const auto field = static_cast<Field>(take(bytes, 2));
    const std::uint64_t size = take(bytes, 4);
    if (size > bytes.size()) return fail("a message of an upgrade ends in a field");
    message.add(field, std::string(bytes.substr(0, size)));
    bytes.remove_prefix(size);
  }
  return message;
}

}  // namespace encore::upgrade
