// Replies of the engine, parsed by hiredis' reader into values of ours, within bounds: the engine
// is not trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

struct redisReader;  // NOLINT(readability-identifier-naming): hiredis has it so

namespace encore::fleet {

// A reply. A value, thread-compatible.
struct Reply {
  enum class Kind : std::uint8_t { kNil, kText, kStatus, kError, kInteger, kArray };
  Kind kind = Kind::kNil;
  std::int64_t integer = 0;
  std::string text = {};  // for a text, a status and an error
  std::vector<Reply> items = {};

  bool is_error() const { return kind == Kind::kError; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_text() const { return kind == Kind::kText || kind == Kind::kStatus; }
};

// The text of an error for logs and pages: printable ASCII, at most 160 bytes.
std::string readable(std::string_view text);

// Reads replies from bytes of a connection. Thread-compatible.
class ReplyReader {
 public:
  // Four of the largest entries; twice the parts of one.
  static constexpr std::size_t kReplyBytesMax = std::size_t{8} << 20U;
  static constexpr std::size_t kItemsMax = std::size_t{1} << 18U;

  ReplyReader();

  // Adds bytes. Errors: no protocol of Redis, or a reply beyond the bounds; the reader is of no use
  // any more.
  Result<void> feed(std::string_view bytes);
  // The next reply; nothing: more bytes are needed. Errors: as above.
  Result<std::optional<Reply>> next();
  // True if the last error was a reply beyond the bounds.
  bool was_too_large() const { return budget_.is_exceeded; }
  // The present reply as far as it was read: its lists have their lengths, and parts that were not
  // read are nil.
  Reply take_front();

  struct Budget {
    std::unique_ptr<Reply> root;  // the present reply; hiredis borrows it
    std::size_t items = 0;        // in it
    bool is_exceeded = false;
  };

 private:
  struct Free {
    void operator()(redisReader* reader) const;
  };
  Budget budget_;
  std::size_t bytes_ = 0;  // since the last whole reply
  std::unique_ptr<redisReader, Free> reader_;
};

}  // namespace encore::fleet
