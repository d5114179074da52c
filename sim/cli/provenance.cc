#include "sim/cli/provenance.h"

#include <openssl/evp.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "base/units.h"

namespace encore::sim {
namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=%+@";

// The value of the first line "name...: value" or "name=value"; empty: there is none.
std::string value_in(const std::string& path, std::string_view name, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find(separator);
    if (line.starts_with(name) && at != std::string::npos) {
      const std::size_t from = line.find_first_not_of(" \t\"", at + 1);
      const std::size_t to = line.find_last_not_of(" \t\"");
      return from == std::string::npos ? "" : line.substr(from, to + 1 - from);
    }
  }
  return {};
}

std::string compiler() {
#ifdef __clang__
  return "clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

Row machine() {
  utsname system{};
  uname(&system);
  const auto pages = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  const auto page_bytes = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
  return {{"processor", value_in("/proc/cpuinfo", "model name", ':')},
          {"cores", std::uint64_t{std::thread::hardware_concurrency()}},
          {"memory", format_bytes(pages * page_bytes)},
          {"system", value_in("/etc/os-release", "PRETTY_NAME", '=') + ", " + system.sysname + " " +
                         system.release + ", " + system.machine},
          {"compiler", compiler()}};
}

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += line.empty() ? "" : " ";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char letter : word) {
      line += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    }
    line += '\'';
  }
  return line;
}

Result<std::string> sha256_of_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  bool fine = file && context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  std::vector<char> block(std::size_t{1} << 20U);
  while (fine && !file.eof()) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    fine = !file.bad() && EVP_DigestUpdate(context.get(), block.data(),
                                           static_cast<std::size_t>(file.gcount())) == 1;
  }
  if (!fine || EVP_DigestFinal_ex(context.get(), digest.data(), &size) != 1) {
    return fail("cannot read " + path + " for its digest" +
                (errno == 0 ? "" : std::string(": ") + std::strerror(errno)));
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += kDigits[digest.at(i) >> 4U];
    hex += kDigits[digest.at(i) & 15U];
  }
  return hex;
}

Result<Provenance> provenance_of(const std::vector<std::string>& words,
                                 const std::vector<std::string>& files) {
  std::vector<std::string> line = words;
  line.insert(line.begin(), "encore-sim");
  Provenance provenance{.command_line = shell_line(line), .files = {}, .machine = machine()};
  for (const std::string& path : files) {
    std::error_code error;
    const bool is_regular = path != "-" && std::filesystem::is_regular_file(path, error);
    Row row = {{"file", path}, {"bytes", Value{}}, {"sha256", Value{}}};
    if (is_regular) {
      const auto digest = sha256_of_file(path);
      if (!digest) {
        return std::unexpected(digest.error());
      }
      row = {{"file", path},
             {"bytes", std::uint64_t{std::filesystem::file_size(path, error)}},
             {"sha256", *digest}};
    }
    provenance.files.push_back(std::move(row));
  }
  return provenance;
}

}  // namespace encore::sim
