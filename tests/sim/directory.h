// A directory of its own for the files of a test, which is gone with them at its end.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

namespace encore::sim {

class Directory {
 public:
  Directory()
      : path_(std::filesystem::temp_directory_path() /
              ("encore_sim_" + std::to_string(::getpid()) + "_" + std::to_string(next()))) {
    std::filesystem::create_directory(path_);
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return at(name);
  }
  std::string at(const std::string& name) const { return (path_ / name).string(); }

 private:
  static int next() {
    static std::atomic<int> number = 0;
    return number++;
  }
  std::filesystem::path path_;
};

}  // namespace encore::sim
