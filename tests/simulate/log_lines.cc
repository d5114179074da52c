// Compiled without access control (CMakeLists.txt): the writer is one that was never opened.
#include "tests/simulate/log_lines.h"

#include <string>
#include <utility>
#include <vector>

namespace encore::simulate {
namespace {

std::function<void(std::string_view)>& lines_of_log() {
  static std::function<void(std::string_view)> on_lines;
  return on_lines;
}

}  // namespace

std::unique_ptr<server::LogWriter> make_log(std::function<void(std::string_view lines)> on_lines) {
  lines_of_log() = std::move(on_lines);
  return std::unique_ptr<server::LogWriter>(new server::LogWriter("/simulated"));
}

// In the place of LogWriter::hand_over() of a buffer with marks, by the linker's --wrap.
bool wrapped_hand_over(server::LogWriter* writer, std::string& buffer, std::vector<server::LogMark>& marks) asm(
    "__wrap__ZN6encore6server9LogWriter9hand_overERNSt7__cxx1112basic_stringIcSt11char_traitsIc"
    "ESaIcEEERSt6vectorINS0_7LogMarkESaISA_EE");

bool wrapped_hand_over(server::LogWriter* /*writer*/, std::string& buffer,
                       std::vector<server::LogMark>& marks) {
  if (lines_of_log()) lines_of_log()(buffer);
  buffer.clear();
  marks.clear();
  return true;
}

}  // namespace encore::simulate
