// HeadEdits: fields that an operator sets, adds and removes in heads. Immutable once made,
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/message.h"

namespace encore::http {

class HeadEdits {
 public:
  // A line in place of all of its name.
  void set(std::string_view name, std::string_view value);
  // Adds a line to them.
  void add(std::string_view name, std::string_view value);
  void remove(std::string_view name);

  bool empty() const { return left_out_.empty() && lines_.empty(); }
  // Nothing that is there goes.
  bool only_adds() const { return left_out_.empty(); }
  // True if lines of this name go.
  bool leaves_out(std::string_view name) const noexcept;
  // Names of these lines, lower case.
  const std::vector<std::string>& left_out() const { return left_out_; }
  // The lines that come, each with CRLF.
  const std::string& lines() const { return lines_; }
  // Edits a head of lines with CRLF, without the empty line, whose first line is no field.
  void apply(std::string& head) const;

 private:
  std::vector<std::string> left_out_;  // lower case
  std::string lines_;
};

}  // namespace encore::http
