// The cost of the disk tier's bytes, compared with bare system calls on the same file: writing
// records (copied, checksummed, in direct writes), reading large ones verified, and the latency of
// a small one. CPU is that of the thread, system time included.
//
//   disk_bench [directory] [MiB]     /var/tmp and 1024 unless given; needs twice the room
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "cache/segment_log.h"
#include "proxy/disk/aligned_buffer.h"
#include "proxy/disk/file.h"
#include "proxy/disk/open.h"
#include "proxy/disk/record_reader.h"
#include "proxy/disk/segment_writer.h"

namespace {

using namespace encore;        // NOLINT(google-build-using-namespace): a program, no header
using namespace encore::disk;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kSmallReads = 20'000;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void print_cost(const char* name, std::uint64_t bytes, const std::function<void()>& work) {
  const double cpu = cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  const double gib = static_cast<double>(bytes) / static_cast<double>(kGiB);
  std::printf("%-44s %8.3f CPU s/GiB %8.0f MiB/s\n", name, (cpu_seconds() - cpu) / gib,
              gib * 1024 / wall.count());
}

void print_latency(const char* name, std::vector<double> microseconds) {
  std::ranges::sort(microseconds);
  const auto at = [&](double share) {
    return microseconds[static_cast<std::size_t>(share * double(microseconds.size() - 1))];
  };
  std::printf("%-44s p50 %6.1f us  p99 %7.1f us\n", name, at(0.5), at(0.99));
}

// Microseconds that each of `count` took.
std::vector<double> timed(std::size_t count, const std::function<void()>& once) {
  std::vector<double> took;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    once();
    took.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  return took;
}

template <typename T>
T expected(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "disk_bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class Bench {
 public:
  Bench(const std::string& path, std::uint64_t bytes) : bytes_(bytes) {
    file_ = expected(open_file(path, FileUse::kMake));
    ::unlink(path.c_str());
    OpenOptions options;
    options.disk_bytes = 2 * bytes + 64 * kMiB;
    options.segment_bytes = 64 * kMiB;
    superblock_ = expected(open_disk(*file_, options));
    std::mt19937_64 random(1);
    for (std::size_t at = 0; at < body_.size(); at += 8) {
      const std::uint64_t word = random();
      std::copy_n(reinterpret_cast<const char*>(&word), 8, body_.begin() + std::ptrdiff_t(at));
    }
  }

  void run() {
    // Extents that were never written cost more: not what a cache that is full pays.
    write_bare("first bare write");
    write_bare("bare direct writes of 1 MiB");
    write_records("records of 1 MiB", kMiB);
    read_large();
    write_records("records of 10 KiB", 10 * kKiB);
    write_records("records of 3 KiB", 3 * kKiB);
    read_small();
  }

 private:
  struct Lies {
    cache::DiskPlace place;
    std::uint64_t sequence = 0;
  };

  void write_bare(const char* name) {
    AlignedBuffer buffer(kMiB);
    std::copy_n(reinterpret_cast<const std::byte*>(body_.data()), kMiB, buffer.data());
    print_cost(name, bytes_, [&] {
      for (std::uint64_t at = 0; at < bytes_; at += kMiB) {
        expected(file_->write(buffer.first(kMiB), superblock_.data_offset + at));
      }
      expected(file_->sync());
    });
  }

  void write_records(const char* name, std::uint64_t body_bytes) {
    // A ring of its own, each time from the first segment on.
    SegmentWriter::FoundState found;
    found.version_max = version_;
    found.sequences = {sequence_};
    SegmentWriter writer(*file_, superblock_, found);
    cache::SegmentLog log(
        {.segments = superblock_.segments, .segment_bytes = superblock_.segment_bytes});
    const std::uint64_t base = sequence_;
    places_.clear();
    print_cost(name, bytes_, [&] {
      for (std::uint64_t done = 0; done < bytes_; done += body_bytes) {
        const iovec body{body_.data(), body_bytes};
        Record record{};
        record.text = {.key = key_, .names = {}, .meta = {}, .head = head_};
        record.fields.version = ++version_;
        record.fields.body_bytes = body_bytes;
        record.body = {&body, 1};
        const auto placed = log.place({.bytes = record_bytes(shape_of(record))});
        ENCORE_CHECK(placed, "the file has twice the room");
        if (placed->turn.sequence != 0) {
          sequence_ = base + placed->turn.sequence;
          expected(writer.open({0, placed->turn.segment, sequence_}, 1));
        }
        writer.add(record, placed->place);
        places_.push_back({placed->place, sequence_});
      }
      expected(writer.seal());
    });
    const double written = static_cast<double>(writer.written_bytes());
    std::printf("%-44s %8.2f %% more than the bodies\n", "",
                100 * (written / static_cast<double>(bytes_) - 1));
  }

  void read_large() {
    AlignedBuffer buffer(kMiB);
    print_cost("bare direct reads of 1 MiB", bytes_, [&] {
      for (std::uint64_t at = 0; at < bytes_; at += kMiB) {
        expected(file_->read(buffer.first(kMiB), superblock_.data_offset + at));
      }
    });
    print_cost("records of 1 MiB, verified", bytes_, [&] {
      RecordReader reader(*file_, superblock_);
      for (const Lies& lies : places_) {
        ENCORE_CHECK(reader.open({lies.place, lies.sequence, {}, key_}), "what was written");
        for (std::uint64_t done = 0; done < kMiB;) {
          const auto got = reader.read_into(done, buffer.first(kMiB - done));
          ENCORE_CHECK(got, "what was written");
          done += *got;
        }
      }
    });
  }

  void read_small() {
    std::mt19937_64 random(2);
    AlignedBuffer page(kPageBytes);
    print_latency("bare direct read of 4 KiB", timed(kSmallReads, [&] {
                    const std::uint64_t at = random() % (bytes_ / kPageBytes) * kPageBytes;
                    expected(file_->read(page.first(kPageBytes), superblock_.data_offset + at));
                  }));
    RecordReader reader(*file_, superblock_);
    print_latency("record of 3 KiB, verified", timed(kSmallReads, [&] {
                    const Lies& lies = places_[random() % places_.size()];
                    ENCORE_CHECK(reader.open({lies.place, lies.sequence, {}, key_}),
                                 "what was written");
                    ENCORE_CHECK(reader.read(0, 3 * kKiB), "what was written");
                  }));
  }

  std::uint64_t bytes_;
  std::unique_ptr<File> file_;
  Superblock superblock_;
  std::string key_ = "https://www.example.org/pool/main/e/encore/encore_1.0-1_amd64.deb";
  std::string head_ = std::string(250, 'h');
  std::string body_ = std::string(kMiB, '\0');
  std::vector<Lies> places_;
  std::uint64_t sequence_ = 0;
  cache::DiskVersion version_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  const std::string directory = count > 1 ? arguments[1] : "/var/tmp";
  const std::uint64_t mib = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1024;
  if (count > 3 || mib == 0) {
    std::fputs("usage: disk_bench [directory] [MiB]\n", stderr);
    return 2;
  }
  Bench bench(directory + "/disk_bench-" + std::to_string(::getpid()), mib * kMiB);
  bench.run();
  return 0;
}
