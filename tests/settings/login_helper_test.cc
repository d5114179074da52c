#include "proxy/settings/login_helper.h"

#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace encore::server {
namespace {

// A program of the shell that is asked.
class Script {
 public:
  explicit Script(const std::string& text) : path_(directory_.path() + "/helper") {
    std::ofstream(path_) << "#!/bin/sh\n" << text;
    REQUIRE(::chmod(path_.c_str(), 0700) == 0);
  }
  std::vector<std::string> command() const { return {path_, "argument of two words"}; }
  // Lines that it has written to the file "log" of its directory.
  std::vector<std::string> log() const {
    std::ifstream file(directory_.path() + "/log");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  // Makes the file "gate" there.
  void open_gate() const { std::ofstream(directory_.path() + "/gate").flush(); }

 private:
  TemporaryDirectory directory_;
  std::string path_;
};

const std::string kGate = "\"$(dirname \"$0\")/gate\" ]";
const std::string kLog = "\"$(dirname \"$0\")/log\"\n";

TEST_CASE("a program says if a password is right", "[logins][helper]") {
  const Script script("echo \"started $1\" >>" + kLog + "while read -r line; do echo \"$line\" >>" +
                      kLog +
                      "case $line in 'ann right') echo OK user=ann;; *) echo ERR;; esac\ndone\n");
  LoginHelper helper(script.command());
  CHECK(helper.ask("ann", "right") == LoginVerdict::kRight);
  CHECK(helper.ask("ann", "wrong") == LoginVerdict::kWrong);
  CHECK(helper.ask("ann", "ri ght\xc3\xa4%") == LoginVerdict::kWrong);
  // One process is asked for all, one after the other.
  CHECK(script.log() == std::vector<std::string>{"started argument of two words", "ann right",
                                                 "ann wrong", "ann ri%20ght%c3%a4%25"});
}

TEST_CASE("a name that a program would read otherwise is wrong", "[logins][helper]") {
  const Script script("echo started >>" + kLog + "while read -r line; do echo OK; done\n");
  LoginHelper helper(script.command());
  using namespace std::string_view_literals;
  for (const std::string_view name : {""sv, "ann\0evil"sv, "ann\nroot"sv, "\x7f"sv}) {
    CHECK(helper.ask(name, "right") == LoginVerdict::kWrong);
  }
  CHECK(helper.ask("ann", "right\0more"sv) == LoginVerdict::kWrong);
  CHECK(helper.ask("ann", "") == LoginVerdict::kWrong);
  CHECK(script.log().empty());
}

TEST_CASE("a program that gives no answer has none", "[logins][helper]") {
  const char* const text =
      GENERATE("exit 1\n", "read -r line; echo\n", "read -r line; exit 0\n",
               "read -r line; echo MAYBE\n", "read -r line; printf OK\n",
               "read -r line; printf 'ERR\\nOK\\n'\n", "read -r line; head -c 10000 /dev/zero\n");
  CAPTURE(text);
  const Script script(text);
  LoginHelper helper(script.command());
  CHECK(helper.ask("ann", "right") == LoginVerdict::kUnknown);
  CHECK(LoginHelper({"/no/such/program"}).ask("ann", "right") == LoginVerdict::kUnknown);
}

TEST_CASE("a program that cannot check refuses", "[logins][helper]") {
  const Script script("read -r line; echo BH no directory\n");
  LoginHelper helper(script.command());
  CHECK(helper.ask("ann", "right") == LoginVerdict::kWrong);
}

TEST_CASE("a program that has ended since is started again", "[logins][helper]") {
  const Script script("echo started >>" + kLog + "read -r line; echo OK\n");
  LoginHelper helper(script.command());
  for (int i = 0; i < 3; ++i) CHECK(helper.ask("ann", "right") == LoginVerdict::kRight);
  CHECK(script.log().size() == 3);
}

TEST_CASE("a program works on when its service is told to end", "[logins][helper]") {
  const Script script("while read -r line; do kill -TERM $$; echo OK; done\n");
  LoginHelper helper(script.command());
  CHECK(helper.ask("ann", "right") == LoginVerdict::kRight);
  CHECK(helper.ask("ann", "right") == LoginVerdict::kRight);
}

TEST_CASE("an answer too many is nobody's", "[logins][helper]") {
  const Script script("read -r line; echo ERR; until [ -e " + kGate +
                      "; do :; done; echo OK; echo said >>" + kLog + "read -r line\n");
  LoginHelper helper(script.command());
  CHECK(helper.ask("ann", "wrong") == LoginVerdict::kWrong);
  script.open_gate();
  while (script.log().empty()) std::this_thread::yield();
  CHECK(helper.ask("eve", "wrong") != LoginVerdict::kRight);
}

TEST_CASE("a question that waits ends when it is stopped", "[logins][helper]") {
  const Script script("read -r line; sleep 60\n");
  LoginHelper helper(script.command());
  LoginVerdict verdict = LoginVerdict::kRight;
  std::thread asking([&] { verdict = helper.ask("ann", "right"); });
  helper.stop();
  asking.join();
  CHECK(verdict == LoginVerdict::kUnknown);
}

TEST_CASE("a program has to be there", "[logins][helper]") {
  const Script script("exit 0\n");
  CHECK(LoginHelper::check_program(script.command()).has_value());
  CHECK(LoginHelper::check_program({"/no/such/program"}).error().message ==
        "/no/such/program: cannot be run: No such file or directory");
  CHECK(LoginHelper::check_program({"helper"}).error().message ==
        "helper: accepted: an absolute path of a program");
}

}  // namespace
}  // namespace encore::server
