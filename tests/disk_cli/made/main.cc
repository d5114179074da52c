// encore_make_disk PATH NOW: a disk at PATH with what a proxy might have stored until NOW, in
// seconds since 1970: for tests/e2e/test_disk_commands.py and the examples of docs/DISK.md.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/units.h"
#include "proxy/disk/file.h"
#include "tests/disk_cli/made/made_disk.h"

namespace {

using encore::disk::MadeDisk;
using encore::disk::MadeObject;
using encore::disk::WallSeconds;

constexpr WallSeconds kDay = 86'400;

// Ten days of pages, pictures and packages, and a film that is too long for one record.
void fill(MadeDisk& disk, WallSeconds now) {
  for (WallSeconds hour = 240; hour > 0; --hour) {
    // Ten minutes off, so that what is shown in hours stays as it is for a while.
    const WallSeconds then = now - hour * 3600 - 600;
    const std::string number = std::to_string(hour);
    disk.write({.url = "https://www.example.org/news/" + number,
                .names = "accept-encoding",
                .variant_key = "gzip",
                .tags = {"news"},
                .body_bytes = 3000 + hour * 40,
                .stored_at = then,
                .fresh_for = 6 * 3600});
    if (hour % 3 == 0) {
      disk.write({.url = "https://img.example.org/" + number + ".jpg",
                  .body_bytes = 60'000 + hour * 100,
                  .stored_at = then,
                  .fresh_for = 30 * kDay});
    }
    if (hour % 24 == 0) {
      disk.write({.url = "http://deb.debian.org/pool/" + number + ".deb",
                  .body_bytes = 2'000'000 + hour * 1000,
                  .stored_at = then,
                  .fresh_for = 365 * kDay});
    }
  }
  const MadeObject start{.url = "https://www.example.org/",
                         .body_bytes = 12'000,
                         .stored_at = now - 5400,
                         .fresh_for = 60};
  disk.write({.url = "https://www.example.org/",
              .body_bytes = 11'000,
              .stored_at = now - kDay,
              .fresh_for = 60});
  disk.purge_url({.url = "https://www.example.org/news/240"});
  disk.write(start);
  disk.write({.url = "https://video.example.org/1.mp4",
              .body_bytes = 9'000'000,
              .stored_at = now - 4500,
              .fresh_for = 30 * kDay});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: encore_make_disk PATH NOW\n", stderr);
    return 2;
  }
  auto file = encore::disk::open_file(argv[1], encore::disk::FileUse::kMake);
  if (!file) {
    std::fprintf(stderr, "encore_make_disk: %s\n", file.error().message.c_str());
    return 1;
  }
  const auto now = static_cast<WallSeconds>(std::strtoul(argv[2], nullptr, 10));
  MadeDisk disk(**file, 64 * encore::kMiB, 4 * encore::kMiB, now - 10 * kDay - 1200);
  fill(disk, now);
  disk.stop();
  return 0;
}
