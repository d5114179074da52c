#include "proxy/disk/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "proxy/disk/aligned_buffer.h"
#include "tests/catch.h"
#include "tests/disk/model/memory_file.h"
#include "tests/temporary_directory.h"

namespace encore::disk {
namespace {

using server::TemporaryDirectory;
using server::write_text;

AlignedBuffer filled(std::size_t bytes, unsigned char value) {
  AlignedBuffer buffer(bytes);
  std::fill_n(buffer.data(), buffer.size(), std::byte{value});
  return buffer;
}

bool is_all(std::span<const std::byte> bytes, unsigned char value) {
  return std::ranges::all_of(bytes, [&](std::byte byte) { return byte == std::byte{value}; });
}

// The behaviour of every File.
void check_conformance(File& file) {
  CHECK(file.size() == 0U);
  REQUIRE(file.allocate(5 * kIoAlign));
  CHECK(file.size() == 5 * kIoAlign);
  AlignedBuffer bytes = filled(2 * kIoAlign, 7);
  REQUIRE(file.write(bytes.first(2 * kIoAlign), kIoAlign));
  REQUIRE(file.sync());
  AlignedBuffer back = filled(5 * kIoAlign, 1);
  REQUIRE(file.read(back.first(5 * kIoAlign), 0));
  CHECK(is_all(back.first(kIoAlign), 0));
  CHECK(is_all({back.data() + kIoAlign, 2 * kIoAlign}, 7));
  CHECK(is_all({back.data() + 3 * kIoAlign, 2 * kIoAlign}, 0));
  // The contents stay.
  REQUIRE(file.allocate(6 * kIoAlign));
  REQUIRE(file.allocate(2 * kIoAlign));
  CHECK(file.size() == 6 * kIoAlign);
  REQUIRE(file.truncate(2 * kIoAlign));
  CHECK(file.size() == 2 * kIoAlign);
  REQUIRE(file.read(back.first(kIoAlign), kIoAlign));
  CHECK(is_all(back.first(kIoAlign), 7));
  const auto beyond = file.read(back.first(2 * kIoAlign), kIoAlign);
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().message.find(file.path()) != std::string::npos);
}

}  // namespace

TEST_CASE("a file keeps what is written, wherever it lies", "[disk]") {
  const TemporaryDirectory place;
  const auto file = open_file(place / "disk", FileUse::kMake);
  REQUIRE(file);
  check_conformance(**file);
  MemoryFile memory;
  check_conformance(memory);
  // A file system that knows no direct access, or did not before Linux 6.6.
  const std::string path = "/dev/shm/encore-disk-test-" + std::to_string(::getpid());
  const auto buffered = open_file(path, FileUse::kMake);
  if (!buffered) {
    WARN("no /dev/shm: " << buffered.error().message);
    return;
  }
  ::unlink(path.c_str());
  check_conformance(**buffered);
}

TEST_CASE("a file of a disk is for its owner alone", "[disk]") {
  const TemporaryDirectory place;
  write_text(place / "old", "");
  REQUIRE(::chmod((place / "old").c_str(), 0644) == 0);
  for (const std::string& path : {place / "disk", place / "old"}) {
    REQUIRE(open_file(path, FileUse::kMake));
    struct stat status{};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600);
  }
  for (const mode_t mode : {0666U, 0620U, 0602U}) {
    CAPTURE(mode);
    REQUIRE(::chmod((place / "old").c_str(), mode) == 0);
    for (const FileUse use : {FileUse::kMake, FileUse::kKeep, FileUse::kLook}) {
      const auto open = open_file(place / "old", use);
      REQUIRE_FALSE(open);
      CHECK(open.error().message.ends_with("run: chmod 600 " + (place / "old")));
    }
  }
  REQUIRE(::chmod((place / "old").c_str(), 0600) == 0);
  if (::chown((place / "old").c_str(), 12345, 12345) != 0) {
    WARN("only root can make a file another's");
    return;
  }
  const auto foreign = open_file(place / "old", FileUse::kKeep);
  REQUIRE_FALSE(foreign);
  CHECK(foreign.error().message.find("belongs to user 12345") != std::string::npos);
}

TEST_CASE("a disk is taken once, by the same process too", "[disk]") {
  const TemporaryDirectory place;
  auto file = open_file(place / "disk", FileUse::kMake);
  REQUIRE(file);
  const auto again = open_file(place / "disk", FileUse::kKeep);
  REQUIRE_FALSE(again);
  CHECK(again.error().message ==
        "disk " + (place / "disk") + " is in use by another encore; each needs one of its own");
  // A reader that only inspects is admitted, and changes nothing.
  const auto look = open_file(place / "disk", FileUse::kLook);
  REQUIRE(look);
  AlignedBuffer bytes = filled(kIoAlign, 1);
  CHECK_FALSE((*look)->write(bytes.first(kIoAlign), 0));
  file->reset();
  CHECK(open_file(place / "disk", FileUse::kKeep));
}

TEST_CASE("what is no file and no device is not used, nor waited for", "[disk]") {
  const TemporaryDirectory place;
  REQUIRE(::mkfifo((place / "pipe").c_str(), 0600) == 0);
  const auto pipe = open_file(place / "pipe", FileUse::kKeep);
  REQUIRE_FALSE(pipe);
  CHECK(pipe.error().message.find("neither a regular file nor a block device") !=
        std::string::npos);
  for (const FileUse use : {FileUse::kMake, FileUse::kKeep, FileUse::kLook}) {
    const auto directory = open_file(place.path(), use);
    REQUIRE_FALSE(directory);
    CHECK(directory.error().message.ends_with("it is a directory; name a file in it, as " +
                                              (place / "disk")));
  }
  const auto nowhere = open_file(place / "none/disk", FileUse::kMake);
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().message.ends_with("its directory does not exist; make it with: mkdir -p " +
                                          (place / "none")));
  const auto absent = open_file(place / "absent", FileUse::kKeep);
  REQUIRE_FALSE(absent);
  CHECK(absent.error().message.find(place / "absent") != std::string::npos);
}

TEST_CASE("a full device is told of, and the file is as large as before", "[disk]") {
  const TemporaryDirectory place;
  const auto file = open_file(place / "disk", FileUse::kMake);
  REQUIRE(file);
  REQUIRE((*file)->allocate(kIoAlign));
  const auto room = (*file)->allocate(std::uint64_t{1} << 60U);
  REQUIRE_FALSE(room);
  CHECK(room.error().message.find(place / "disk") != std::string::npos);
  CHECK((*file)->size() == kIoAlign);
}

TEST_CASE("a crash keeps what was synced, and of the rest what it likes", "[disk]") {
  MemoryFile file;
  REQUIRE(file.allocate(4 * kIoAlign));
  AlignedBuffer one = filled(kIoAlign, 1);
  AlignedBuffer two = filled(kIoAlign, 2);
  AlignedBuffer three = filled(kIoAlign, 3);
  REQUIRE(file.write(one.first(kIoAlign), 0));
  REQUIRE(file.sync());
  REQUIRE(file.write(two.first(kIoAlign), kIoAlign));
  REQUIRE(file.write(three.first(kIoAlign), 2 * kIoAlign));
  const auto page = [](const Image& image, std::size_t number) {
    return std::span(image).subspan(number * kIoAlign, kIoAlign);
  };
  CHECK(is_all(page(file.crash_after(0), 0), 1));
  CHECK(is_all(page(file.crash_after(0), 1), 0));
  CHECK(is_all(page(file.crash_after(1), 1), 2));
  CHECK(is_all(page(file.crash_after(1), 2), 0));
  CHECK(is_all(page(file.crash_after(2), 2), 3));
  const Image torn = file.crash_within(1, 3);
  CHECK(is_all(page(torn, 2).first(3 * MemoryFile::kSector), 3));
  CHECK(is_all(page(torn, 2).subspan(3 * MemoryFile::kSector), 0));
  std::mt19937_64 random(1);
  bool later_alone = false;
  for (int i = 0; i < 100; ++i) {
    const Image image = file.crash_anyhow(random);
    REQUIRE(is_all(page(image, 0), 1));
    later_alone = later_alone || (is_all(page(image, 1), 0) && is_all(page(image, 2), 3));
  }
  CHECK(later_alone);
}

}  // namespace encore::disk
