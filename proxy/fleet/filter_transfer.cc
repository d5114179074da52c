#include "proxy/fleet/filter_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace encore::fleet {
namespace {

constexpr Nanoseconds kTransferPatience = std::chrono::seconds(3);
constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(20);
// Parts that were sent and not taken: a giver waits before it sends another.
constexpr std::uint64_t kPartsAhead = 4;
constexpr const char* kPartLifeMs = "30000";
constexpr std::uint64_t kHeadBytesMax = 256;
constexpr std::string_view kFormat = "encore-filter 1 ";

// Changed bytes of the head lead to another key.
std::string context_of(std::uint64_t bytes) { return fmt::format("{}{}", kFormat, bytes); }

std::uint64_t parts_of(std::uint64_t bytes) { return (bytes + kPartBytes - 1) / kPartBytes; }

}  // namespace

std::string encode(const TransferHead& head) {
  return context_of(head.bytes) + " " + net::to_hex(head.key);
}

std::optional<TransferHead> decode_transfer_head(std::string_view text) {
  if (!text.starts_with(kFormat)) return std::nullopt;
  text.remove_prefix(kFormat.size());
  TransferHead head;
  const char* const last = text.data() + text.size();
  const auto [end, status] = std::from_chars(text.data(), last, head.bytes);
  if (status != std::errc{} || end == last || *end != ' ' || head.bytes == 0) return std::nullopt;
  const auto key = net::parse_digest({end + 1, last});
  if (!key) return std::nullopt;
  head.key = *key;
  return head;
}

std::string FilterTransfer::name_of(const std::string& key, std::uint64_t part) const {
  return fmt::format("{}:filter:{}:{}", options_.engine.stream, key, part);
}

// Errors include those that the engine replies.
Result<Reply> FilterTransfer::call(const Command& command) {
  auto reply = link_.call(command, kTransferPatience);
  if (reply && reply->is_error()) return fail("the engine refuses: " + readable(reply->text));
  return reply;
}

Result<std::string> FilterTransfer::receive(const net::SealingPair& pair, MonotonicTime end) {
  if (auto done = link_.connect(kTransferPatience); !done) return std::unexpected(done.error());
  auto received = receive_parts(pair, end);
  link_.close();
  return received;
}

Result<std::string> FilterTransfer::receive_parts(const net::SealingPair& pair, MonotonicTime end) {
  const std::string own = net::to_hex(pair.public_key());
  const auto text =
      await(name_of(own, 0), kHeadBytesMax, std::min(end, monotonic_now() + patience_.begin));
  if (!text) return std::unexpected(text.error());
  const auto head = decode_transfer_head(*text);
  if (!head) return fail("it begins with \"" + readable(*text).substr(0, 40) + "\"");
  if (head->bytes > options_.filter_bytes_max) {
    return fail(
        fmt::format("it has {} bytes, accepted: at most {}, as admission.adopted_memory has it",
                    head->bytes, options_.filter_bytes_max));
  }
  const auto key = pair.agree(head->key, context_of(head->bytes));
  if (!key) return fail("its key is none");
  std::string bytes;
  for (std::uint64_t part = 1; part <= parts_of(head->bytes); ++part) {
    const std::string name = name_of(own, part);
    const std::uint64_t size = std::min(kPartBytes, head->bytes - bytes.size());
    const auto sealed =
        await(name, size + net::kSealBytes, std::min(end, monotonic_now() + patience_.silence));
    if (!sealed) return std::unexpected(sealed.error());
    const auto opened = net::open_sealed(*key, part, *sealed);
    if (!opened || opened->size() != size) {
      return fail(fmt::format("part {} is not what was sealed for this node", part));
    }
    bytes += *opened;
    if (auto done = call({"DEL", name, name_of(own, 0)}); !done) {
      return std::unexpected(done.error());
    }
  }
  return bytes;
}

// Asks for a byte more than it takes, so that the engine never sends more.
Result<std::string> FilterTransfer::await(const std::string& name, std::uint64_t bytes_max,
                                          MonotonicTime end) {
  const MonotonicTime begin = monotonic_now();
  for (;;) {
    auto reply = call({"GETRANGE", name, "0", std::to_string(bytes_max)});
    if (!reply) return std::unexpected(reply.error());
    if (reply->text.size() > bytes_max) {
      return fail(fmt::format("it sent more than the {} bytes of a part", bytes_max));
    }
    if (!reply->text.empty()) return std::move(reply->text);
    if (stop_.is_stopped()) return fail("this process is exiting");
    if (monotonic_now() >= end) {
      return fail(fmt::format("nothing came for {:.1f} s",
                              std::chrono::duration<double>(monotonic_now() - begin).count()));
    }
    stop_.wait(kPollInterval);
  }
}

Result<void> FilterTransfer::send(const std::string& key, std::string_view bytes) {
  if (auto done = link_.connect(kTransferPatience); !done) return done;
  auto sent = send_parts(key, bytes);
  link_.close();
  return sent;
}

Result<void> FilterTransfer::send_parts(const std::string& key, std::string_view bytes) {
  const auto theirs = net::parse_digest(key);
  const auto pair = net::SealingPair::create();
  if (!pair) return std::unexpected(pair.error());
  const auto common =
      theirs ? pair->agree(*theirs, context_of(bytes.size())) : std::optional<net::Digest>();
  if (!common) return fail("its key is none");
  auto done = put(name_of(key, 0), encode({.bytes = bytes.size(), .key = pair->public_key()}));
  std::uint64_t part = 1;
  for (; done && part <= parts_of(bytes.size()); ++part) {
    if (part > kPartsAhead) done = await_taken(name_of(key, part - kPartsAhead));
    if (!done) break;
    const auto some = bytes.substr((part - 1) * kPartBytes, kPartBytes);
    done = put(name_of(key, part), net::seal(*common, part, some));
  }
  if (!done) remove(key, part);
  return done;
}

// After a transfer that failed with this part: an engine that is full needs the room for purges.
void FilterTransfer::remove(const std::string& key, std::uint64_t part) {
  if (!link_.is_connected()) return;
  Command command = {"DEL", name_of(key, 0)};
  for (std::uint64_t i = 0; i <= std::min(part, kPartsAhead); ++i) {
    command.push_back(name_of(key, part - i));
  }
  (void)call(command);
}

Result<void> FilterTransfer::await_taken(const std::string& name) {
  const MonotonicTime end = monotonic_now() + patience_.silence;
  for (;;) {
    const auto reply = call({"EXISTS", name});
    if (!reply) return std::unexpected(reply.error());
    if (reply->integer == 0) return {};
    if (stop_.is_stopped()) return fail("this process is exiting");
    if (monotonic_now() >= end) return fail("it does not read");
    stop_.wait(kPollInterval);
  }
}

// It expires if nobody takes it.
Result<void> FilterTransfer::put(const std::string& name, std::string value) {
  const auto reply = call({"SET", name, std::move(value), "PX", kPartLifeMs});
  return reply ? Result<void>() : std::unexpected(reply.error());
}

}  // namespace encore::fleet
