#include "proxy/observe/log_writer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/names_seen.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

TEST_CASE("what is handed over is written in order and appended to what is there",
          "[server][log]") {
  const TemporaryDirectory place;
  write_text(place / "log", "before\n");
  {
    auto writer = LogWriter::open(place / "log");
    REQUIRE(writer.has_value());
    std::string buffer = "one\n";
    CHECK((*writer)->hand_over(buffer));
    CHECK(buffer.empty());
    buffer = "two\n";
    CHECK((*writer)->hand_over(buffer));
    (*writer)->flush();
    CHECK(read_text(place / "log") == "before\none\ntwo\n");
    buffer = "three\n";
    CHECK((*writer)->hand_over(buffer));
  }  // writes what waits
  CHECK(read_text(place / "log") == "before\none\ntwo\nthree\n");
}

TEST_CASE("a log that cannot be opened is named", "[server][log]") {
  const TemporaryDirectory place;
  const auto writer = LogWriter::open(place / "no/such/log");
  REQUIRE_FALSE(writer.has_value());
  CHECK(writer.error().message.find(place / "no/such/log") != std::string::npos);
}

TEST_CASE("after a rotation the log goes on in a new file", "[server][log]") {
  const TemporaryDirectory place;
  auto writer = LogWriter::open(place / "log");
  REQUIRE(writer.has_value());
  std::string buffer = "old\n";
  CHECK((*writer)->hand_over(buffer));
  (*writer)->flush();
  std::filesystem::rename(place / "log", place / "log.1");
  (*writer)->reopen();
  buffer = "new\n";
  CHECK((*writer)->hand_over(buffer));
  (*writer)->flush();
  CHECK(read_text(place / "log.1") == "old\n");
  CHECK(read_text(place / "log") == "new\n");
}

TEST_CASE("a buffer beyond the backlog is dropped whole and said to be", "[server][log]") {
  const TemporaryDirectory place;
  auto writer = LogWriter::open(place / "log");
  REQUIRE(writer.has_value());
  std::string buffer(LogWriter::kBacklogBytesMax + 1, 'x');
  CHECK_FALSE((*writer)->hand_over(buffer));
  CHECK(buffer.empty());
  buffer = "next\n";
  CHECK((*writer)->hand_over(buffer));
  (*writer)->flush();
  CHECK(read_text(place / "log") == "next\n");
}

TEST_CASE("a pipe that nobody reads does not keep the writer from its end", "[server][log]") {
  const TemporaryDirectory place;
  REQUIRE(::mkfifo((place / "log").c_str(), 0600) == 0);
  const int reader = ::open((place / "log").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  {
    auto writer = LogWriter::open(place / "log");
    REQUIRE(writer.has_value());
    // More than a pipe holds, so that the first stays a part and others wait behind it.
    for (int i = 0; i < 3; ++i) {
      std::string buffer;
      while (buffer.size() < 100'000) buffer += "a record of some length\n";
      CHECK((*writer)->hand_over(buffer));
    }
  }
  std::string kept(200'000, '\0');
  const ssize_t got = ::read(reader, kept.data(), kept.size());
  CHECK(got >= 4096);
  CHECK(got < 100'000);
  CHECK(kept.starts_with("a record of some length\n"));
  ::close(reader);
}

TEST_CASE("records of many threads are neither lost nor torn", "[server][log]") {
  constexpr int kThreads = 4;
  constexpr int kRecords = 2000;
  const TemporaryDirectory place;
  {
    auto writer = LogWriter::open(place / "log");
    REQUIRE(writer.has_value());
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&writer, thread] {
        LogBuffer buffer(writer->get());
        for (int record = 0; record < kRecords; ++record) {
          buffer.text() += std::to_string(thread) + " " + std::to_string(record) + " " +
                           std::string(static_cast<std::size_t>(record % 90), 'r') + "\n";
          (void)buffer.finish_record(WallTime(std::chrono::nanoseconds(record)));
          if (record % 500 == 0) (void)buffer.hand_over();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::istringstream lines(read_text(place / "log"));
  std::vector<int> next(kThreads, 0);
  int thread = 0;
  int record = 0;
  std::string rest;
  for (std::string text; std::getline(lines, text);) {
    std::istringstream parts(text);
    REQUIRE(parts >> thread >> record);
    REQUIRE(record == next.at(static_cast<std::size_t>(thread))++);
    parts >> rest;
    if (record % 90 != 0) REQUIRE(rest == std::string(static_cast<std::size_t>(record % 90), 'r'));
  }
  for (const int count : next) CHECK(count == kRecords);
}

TEST_CASE("what workers hand over in one beat is written in the order of its times",
          "[server][log]") {
  const TemporaryDirectory place;
  auto writer = LogWriter::open(place / "log");
  REQUIRE(writer.has_value());
  LogBuffer odd(writer->get());
  LogBuffer even(writer->get());
  LogBuffer late(writer->get());
  std::string expected;
  for (int record = 1; record <= 100; ++record) {
    LogBuffer& buffer = record % 2 == 1 ? odd : even;
    buffer.text() += std::to_string(record) + "\n";
    CHECK(buffer.finish_record(WallTime(std::chrono::seconds(record))) == 0);
    expected += std::to_string(record) + "\n";
  }
  // Records of one worker may be out of order, too: the first to begin may end last.
  for (const int record : {102, 101}) {
    late.text() += std::to_string(record) + "\n";
    CHECK(late.finish_record(WallTime(std::chrono::seconds(record))) == 0);
  }
  expected += "101\n102\n";
  for (LogBuffer* const buffer : {&late, &even, &odd}) CHECK(buffer->hand_over() == 0);
  (*writer)->flush();
  CHECK(read_text(place / "log") == expected);
}

TEST_CASE("a buffer without a writer takes and keeps nothing to write", "[server][log]") {
  LogBuffer buffer(nullptr);
  CHECK_FALSE(buffer.enabled());
  CHECK(buffer.hand_over() == 0);
}

// Fails writes beyond so many bytes of a file, as a full disk does, as long as it lives.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_CASE("what could not be written is written later, where it had stopped", "[server][log]") {
  const TemporaryDirectory place;
  auto writer = LogWriter::open(place / "log");
  REQUIRE(writer.has_value());
  const auto write = [&](std::string text) {
    CHECK((*writer)->hand_over(text));
    (*writer)->flush();
  };
  {
    const FileLimit full(7);
    write("one\ntwo\nthree\n");
    write("four\n");
    CHECK(read_text(place / "log") == "one\ntwo");
  }
  SECTION("with what comes next") {
    write("five\n");
    CHECK(read_text(place / "log") == "one\ntwo\nthree\nfour\nfive\n");
  }
  SECTION("by itself") {
    const std::string whole = "one\ntwo\nthree\nfour\n";
    const MonotonicTime end = monotonic_now() + std::chrono::minutes(1);
    while (read_text(place / "log") != whole && monotonic_now() < end) std::this_thread::yield();
    CHECK(read_text(place / "log") == whole);
  }
  SECTION("in another file from the beginning of the line") {
    std::filesystem::rename(place / "log", place / "log.1");
    (*writer)->reopen();
    write("five\n");
    CHECK(read_text(place / "log") == "two\nthree\nfour\nfive\n");
  }
  SECTION("in a file that was cut off meanwhile likewise") {
    write_text(place / "log", "");
    write("five\n");
    CHECK(read_text(place / "log") == "two\nthree\nfour\nfive\n");
  }
  SECTION("at the end") {
    writer->reset();
    CHECK(read_text(place / "log") == "one\ntwo\nthree\nfour\n");
  }
}

TEST_CASE("what cannot be written counts towards the backlog", "[server][log]") {
  const TemporaryDirectory place;
  std::filesystem::create_symlink("/dev/full", place / "log");
  auto writer = LogWriter::open(place / "log");
  REQUIRE(writer.has_value());
  std::string first(LogWriter::kBacklogBytesMax, 'x');
  CHECK((*writer)->hand_over(first));
  (*writer)->flush();
  LogBuffer buffer(writer->get());
  for (int i = 0; i < 3; ++i) {
    buffer.text() += "record\n";
    CHECK(buffer.finish_record(WallTime{}) == 0);
  }
  CHECK(buffer.hand_over() == 3);
  std::filesystem::remove(place / "log");
  (*writer)->reopen();
  std::string last = "last\n";
  while (!(*writer)->hand_over(last)) last = "last\n";
  (*writer)->flush();
  const std::string text = read_text(place / "log");
  CHECK(text.size() == LogWriter::kBacklogBytesMax + 5);
  CHECK(text.ends_with("xlast\n"));
}

TEST_CASE("whether a log could be opened is checked without a file of its name", "[server][log]") {
  const TemporaryDirectory place;
  const NamesSeen seen(place / "");
  CHECK(LogWriter::check(place / "log"));
  CHECK_FALSE(seen.has("log"));
  CHECK(std::filesystem::is_empty(place / ""));
  CHECK_FALSE(LogWriter::check(place / "no/log"));
  CHECK_FALSE(LogWriter::check(place / std::string(300, 'n')));
  // A link to where nothing is yet.
  std::filesystem::create_symlink(place / "there", place / "link");
  CHECK(LogWriter::check(place / "link"));
  CHECK_FALSE(std::filesystem::exists(place / "there"));
}

}  // namespace
}  // namespace encore::server
