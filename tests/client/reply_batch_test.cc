#include "proxy/client/reply_batch.h"

#include <cstring>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

std::string text_of(const ReplyBatch& batch) {
  std::string text;
  for (const iovec& part : batch.parts()) {
    text.append(static_cast<const char*>(part.iov_base), part.iov_len);
  }
  return text;
}

void add_text(ReplyBatch& batch, std::string_view text) {
  std::memcpy(batch.text_room(), text.data(), text.size());
  batch.commit_text(text.size());
}

TEST_CASE("replies are gathered in their order, and nothing of nothing", "[client][batch]") {
  ReplyBatch batch;
  CHECK(batch.empty());
  const std::string head = "head ";
  batch.add_stored(head);
  add_text(batch, "tail ");
  batch.add_stored("");
  batch.add_stored(head);
  add_text(batch, "end");
  CHECK(text_of(batch) == "head tail head end");
  CHECK(batch.bytes() == text_of(batch).size());
  CHECK(batch.parts().size() == 4);
  batch.clear();
  CHECK(batch.empty());
  CHECK(batch.bytes() == 0);
}

TEST_CASE("a batch takes replies until their parts or their text fill it", "[client][batch]") {
  ReplyBatch batch;
  const std::string stored = "s";
  std::size_t replies = 0;
  SECTION("their parts") {
    for (; batch.has_room(10); ++replies) {
      batch.add_stored(stored);
      add_text(batch, "t");
      batch.add_stored(stored);
    }
    CHECK(replies == ReplyBatch::kPartsMax / ReplyBatch::kPartsOfReply);
    CHECK(batch.parts().size() <= ReplyBatch::kPartsMax);
  }
  SECTION("their text") {
    const std::string text(1000, 't');
    for (; batch.has_room(text.size()); ++replies) add_text(batch, text);
    CHECK(replies == ReplyBatch::kTextBytes / text.size());
    CHECK(text_of(batch) == std::string(replies * text.size(), 't'));
  }
  batch.clear();
  CHECK(batch.has_room(ReplyBatch::kTextBytes));
  CHECK_FALSE(batch.has_room(ReplyBatch::kTextBytes + 1));
}

}  // namespace
}  // namespace encore::server
