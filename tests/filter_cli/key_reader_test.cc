#include "filter/cli/key_reader.h"

#include <thread>

#include "tests/filter_cli/run.h"
#include "tests/temporary_directory.h"

namespace encore::filter {
namespace {

using server::TemporaryDirectory;
using server::write_text;
using Keys = std::vector<std::string>;

// All keys of the source, or the error.
Result<Keys> keys_of(const KeySource& source) {
  Monitor monitor;
  KeyReader reader(source, monitor);
  Keys keys;
  while (true) {
    const auto some = reader.next();
    if (!some) {
      return std::unexpected(some.error());
    }
    if (some->empty()) {
      return keys;
    }
    keys.insert(keys.end(), some->begin(), some->end());
  }
}

Keys keys_in(const std::string& bytes, KeyEnd end = KeyEnd::kLine) {
  const Input input(bytes);
  return keys_of({.paths = {}, .in = input.fd(), .end = end}).value();
}

}  // namespace

TEST_CASE("A key is a line without its end", "[filter-cli]") {
  CHECK(keys_in("").empty());
  CHECK(keys_in("a\nb\n") == Keys{"a", "b"});
  CHECK(keys_in("a\nb") == Keys{"a", "b"});
  CHECK(keys_in("\n") == Keys{""});
  CHECK(keys_in("a\n\nb\n") == Keys{"a", "", "b"});
  CHECK(keys_in(" a \n\tb\n") == Keys{" a ", "\tb"});
}

TEST_CASE("A carriage return before the newline belongs to the end, and no other", "[filter-cli]") {
  CHECK(keys_in("a\r\nb\r\n") == Keys{"a", "b"});
  CHECK(keys_in("a\r\nb\r") == Keys{"a", "b"});
  CHECK(keys_in("\r\n\r\r\na\rb\n") == Keys{"", "\r", "a\rb"});
}

TEST_CASE("A key may hold any byte but its end", "[filter-cli]") {
  const std::string bytes("a\0b\nc\xff\xc3\n", 8);
  CHECK(keys_in(bytes) == Keys{std::string("a\0b", 3), "c\xff\xc3"});
  CHECK(keys_in(std::string("a\nb\r\n\0c\r\0\0d", 11), KeyEnd::kNull) ==
        Keys{"a\nb\r\n", "c\r", "", "d"});
}

TEST_CASE("Keys are the same wherever the reads end", "[filter-cli]") {
  // Longer than the buffer, so that keys lie across its end, short ones and long.
  Keys expected;
  std::string bytes;
  for (std::size_t i = 0; bytes.size() < 1'000'000; ++i) {
    expected.push_back(std::string(i * 7919 % 4001, static_cast<char>('a' + i % 26)));
    bytes += expected.back() + (i % 3 == 0 ? "\r\n" : "\n");
  }
  CHECK(keys_in(bytes) == expected);
  // A pipe gives them in pieces.
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::thread writer([&] {
    for (std::size_t at = 0; at < bytes.size(); at += 1013) {
      const std::string_view piece = std::string_view(bytes).substr(at, 1013);
      if (::write(ends[1], piece.data(), piece.size()) != static_cast<ssize_t>(piece.size())) {
        break;
      }
    }
    ::close(ends[1]);
  });
  const auto keys = keys_of({.paths = {}, .in = ends[0]});
  writer.join();
  ::close(ends[0]);
  CHECK(keys.value() == expected);
}

TEST_CASE("The longest key is taken, and one byte more is refused", "[filter-cli]") {
  const std::string longest(kKeyBytesMax, 'x');
  CHECK(keys_in("a\n" + longest + "\nb\n") == Keys{"a", longest, "b"});
  CHECK(keys_in("a\n" + longest + "\r\nb\n") == Keys{"a", longest, "b"});
  CHECK(keys_in("a\n" + longest) == Keys{"a", longest});
  for (const std::string more : {"x\n", "x\r\nb\n", "x", "xx", "xxxxx\n"}) {
    CAPTURE(more);
    const Input input("a\nb\n" + longest + more);
    const auto refused = keys_of({.paths = {}, .in = input.fd()});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message == "standard input:3: a key of more than 1048576 bytes");
  }
}

TEST_CASE("Files are read one after the other, and a last line ends with its file",
          "[filter-cli]") {
  const TemporaryDirectory directory;
  write_text(directory / "a", "1\n2");
  write_text(directory / "b", "");
  write_text(directory / "c", "4\n");
  const Input input("3\n");
  CHECK(
      keys_of({.paths = {directory / "a", directory / "b", "-", directory / "c"}, .in = input.fd()})
          .value() == Keys{"1", "2", "3", "4"});
  const auto missing = keys_of({.paths = {directory / "a", directory / "none"}, .in = input.fd()});
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().message ==
        "cannot read keys from " + (directory / "none") + ": No such file or directory");
  CHECK(keys_of({.paths = {directory.path()}, .in = input.fd()})
            .error()
            .message.ends_with("Is a directory"));
}

TEST_CASE("Progress is known of files", "[filter-cli]") {
  const TemporaryDirectory directory;
  write_text(directory / "a", "12\n34\n");
  Monitor monitor;
  KeyReader reader({.paths = {directory / "a"}}, monitor);
  CHECK(monitor.total == 6);
  while (!reader.next().value().empty()) {
  }
  CHECK(monitor.done == 6);
}

}  // namespace encore::filter
