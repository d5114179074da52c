#include "base/recycled.h"

#include <vector>

namespace encore {
namespace {

std::vector<std::string>& kept() {
  thread_local std::vector<std::string> texts;
  return texts;
}

}  // namespace

std::string take_text() {
  std::vector<std::string>& texts = kept();
  if (texts.empty()) return {};
  std::string text = std::move(texts.back());
  texts.pop_back();
  return text;
}

void give_text(std::string text) {
  std::vector<std::string>& texts = kept();
  if (!kRecycles || texts.size() == kRecycledMax || text.capacity() > kReusedTextMax) return;
  text.clear();
  texts.push_back(std::move(text));
}

}  // namespace encore
