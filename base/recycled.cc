#include "base/recycled.h"

#include <vector>

namespace encore {
namespace {

// Poisons the heap buffer of a text. A short text has none: it lies within the object.
void poison_room(const std::string& text) {
  static const std::size_t within = std::string().capacity();
  if (text.capacity() > within) poison(text.data(), text.capacity() + 1);
}

void unpoison_room(const std::string& text) {
  static const std::size_t within = std::string().capacity();
  if (text.capacity() > within) unpoison(text.data(), text.capacity() + 1);
}

struct Texts {
  std::vector<std::string> kept;
  ~Texts() {
    for (const std::string& text : kept) unpoison_room(text);
  }
};

std::vector<std::string>& kept() {
  thread_local Texts texts;
  return texts.kept;
}

}  // namespace

std::string take_text() {
  std::vector<std::string>& texts = kept();
  if (texts.empty()) return {};
  std::string text = std::move(texts.back());
  texts.pop_back();
  unpoison_room(text);
  return text;
}

void give_text(std::string text) {
  std::vector<std::string>& texts = kept();
  if (texts.size() == kRecycledMax || text.capacity() > kReusedTextMax) return;
  text.clear();
  texts.push_back(std::move(text));
  poison_room(texts.back());
}

}  // namespace encore
