#include "tests/disk/model/made_record.h"

#include <algorithm>
#include <cstring>

#include "filter/hash.h"

namespace encore::disk {

std::string random_text(std::mt19937_64& random, std::size_t bytes) {
  std::string text((bytes + 7) / 8 * 8, '\0');
  for (std::size_t at = 0; at < text.size(); at += 8) {
    const std::uint64_t word = random();
    std::memcpy(text.data() + at, &word, 8);
  }
  text.resize(bytes);
  return text;
}

Record MadeRecord::view() {
  std::size_t at = 0;
  for (iovec& piece : pieces) {
    piece.iov_base = body.data() + at;
    at += piece.iov_len;
  }
  return {.fields = fields,
          .text = {.key = key, .names = names, .meta = meta, .head = head},
          .body = pieces};
}

MadeRecord made_record(std::mt19937_64& random, const RecordSpec& spec) {
  MadeRecord made;
  made.fields = {.kind = spec.kind,
                 .part = spec.kind == RecordKind::kPart ? static_cast<std::uint32_t>(random()) : 0,
                 .key = {random(), random()},
                 .variant = spec.kind == RecordKind::kPart ? 0 : random(),
                 .version = random() >> 9U,
                 .fresh_until = static_cast<WallSeconds>(random()),
                 .keep_until = static_cast<WallSeconds>(random()),
                 .stored_at = static_cast<WallSeconds>(random()),
                 .body_bytes = spec.body_bytes,
                 .body = spec.kind == RecordKind::kObject ? 0 : random() | 1U};
  if (spec.kind != RecordKind::kPart) {
    made.key = "http://" + std::to_string(random()) + ".example/" + std::string(random() % 50, 'k');
    made.fields.key = filter::identify({}, made.key).hash;
    made.names = random() % 2 == 0 ? "" : "accept-encoding";
    made.meta = random_text(random, 96);
    made.head = "HTTP/1.1 200 OK\r\n" + std::string(random() % 300, 'h');
  }
  if (spec.kind == RecordKind::kHead) return made;
  made.body = random_text(random, spec.body_bytes);
  std::size_t rest = made.body.size();
  for (std::size_t i = 1; i < spec.pieces; ++i) {
    made.pieces.push_back({nullptr, rest == 0 ? 0 : random() % (rest + 1)});
    rest -= made.pieces.back().iov_len;
  }
  made.pieces.push_back({nullptr, rest});
  return made;
}

}  // namespace encore::disk
