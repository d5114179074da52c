// The options of every command that reads traces.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "sim/cli/command.h"
#include "sim/trace/trace_reader.h"

namespace encore::sim {

class TraceArguments {
 public:
  // Declares the files and how they are read.
  void declare(Arguments& arguments);
  Result<TraceOptions> options() const;
  const std::vector<std::string>& files() const { return files_; }
  std::string names() const;  // names of the files, with commas
  // For the report's parameters and notes.
  Row parameters() const;
  // Errors: the trace, read to its end, had no request that counts.
  static Result<void> check_counted(const TraceReader& reader);
  // For the report's JSON: the files, how they were read, how sure that is, and why.
  static Table sources(const TraceReader& reader);
  static std::vector<std::string> notes(const TraceReader& reader, const TraceOptions& options);

 private:
  std::vector<std::string> files_;
  std::string format_ = "auto";
  std::string columns_;
  std::string delimiter_;
  std::string methods_ = "GET";
  std::string statuses_ = "200,206,304";
  std::string key_prefix_;
  std::string default_size_ = "1KiB";
  std::string hosts_;
  std::string block_size_ = "0";
  bool all_lines_ = false;
  double bad_max_ = 0.01;
};

}  // namespace encore::sim
