// KeyReader: keys, one a line, from files or a descriptor, many at a time and without a copy.
// Confined to one thread.
//
// A key is the bytes of a line without its end, which is a newline, or a carriage return and a
// newline: a list from a system that ends lines so has the same keys. An empty line is the empty
// key, and what stands behind the last newline is a key too. With kNull a key ends with a byte of
// zero and is taken as it is, newlines and carriage returns included.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/monitor.h"
#include "base/error.h"

namespace encore::filter {

enum class KeyEnd : std::uint8_t { kLine, kNull };

inline constexpr std::size_t kKeyBytesMax = std::size_t{1} << 20U;

struct KeySource {
  std::vector<std::string> paths;  // none: `in`; "-" among them as well
  int in = 0;                      // borrowed
  KeyEnd end = KeyEnd::kLine;
};

class KeyReader {
 public:
  static constexpr std::size_t kKeysAtOnce = 512;

  // `monitor` receives the number of bytes read, and the total if it is known.
  KeyReader(KeySource source, Monitor& monitor);
  ~KeyReader();
  KeyReader(const KeyReader&) = delete;
  KeyReader& operator=(const KeyReader&) = delete;

  // The next keys, kKeysAtOnce at most, which stay until the next call; none at the end. Errors:
  // a file that cannot be read; a key above kKeyBytesMax, with file and line.
  Result<std::span<const std::string_view>> next();

 private:
  Result<bool> open_next();  // false: there is none
  Result<void> read_more();
  void cut_keys();
  void add_key(const char* begin, const char* end);
  std::string name() const;
  std::unexpected<Error> too_long(std::uint64_t line) const;

  KeySource source_;
  Monitor& monitor_;
  std::size_t next_path_ = 0;
  int fd_ = -1;
  bool owned_ = false;  // fd_ is ours to close
  bool ended_ = true;   // end of the file
  std::vector<char> buffer_;
  std::size_t begin_ = 0;       // begin of the bytes that are not cut into keys yet
  std::size_t end_ = 0;         // end of the bytes read
  std::uint64_t keys_cut_ = 0;  // number in the file
  std::vector<std::string_view> keys_;
};

}  // namespace encore::filter
