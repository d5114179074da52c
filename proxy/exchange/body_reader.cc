#include "proxy/exchange/body_reader.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace encore::server {
namespace {

// Parts at a time where bytes are read over.
constexpr std::size_t kSkippedPartsMax = 64;

}  // namespace

bool BodyReader::set_body(store::BodyRef body, std::uint64_t start) {
  ENCORE_CHECK(body && !cursor_, "content is cut from one body");
  body_ = std::move(body);
  cursor_ = body_->open(start);
  return cursor_.has_value();
}

BodyReader::Piece& BodyReader::last_piece() {
  if (at_end() || piece_at(pieces_ - 1).has_range()) {
    if (pieces_ != 0) further_.emplace_back();
    ++pieces_;
  }
  return piece_at(pieces_ - 1);
}

void BodyReader::add_text(std::string text) {
  ENCORE_CHECK(!has_open_end(), "nothing follows an open body");
  if (text.empty()) return;
  std::string& last = last_piece().text;
  if (last.empty()) {
    last = std::move(text);
  } else {
    last += text;
  }
}

void BodyReader::add_range(std::uint64_t begin, std::uint64_t end) {
  ENCORE_CHECK(cursor_, "a range is cut from a body");
  ENCORE_CHECK(begin <= end && end != kOpenEnd, "a range has two ends");
  ENCORE_CHECK(!has_open_end(), "nothing follows an open body");
  if (begin == end) return;
  Piece& last = last_piece();
  last.begin = begin;
  last.end = end;
}

void BodyReader::add_rest() {
  ENCORE_CHECK(cursor_ && pieces_ == 0, "an open body is all that there is");
  Piece& last = last_piece();
  last.begin = cursor_->position();
  last.end = kOpenEnd;
}

void BodyReader::pass_over(std::uint64_t position) {
  ENCORE_CHECK(cursor_ && pieces_ == 0, "what is passed over comes before what is read");
  if (cursor_->position() < position) skip_to(position);
}

BodyReader::Left BodyReader::left() const {
  Left left{.begin = kOpenEnd, .end = 0};
  for (std::size_t i = piece_; i < pieces_; ++i) {
    const Piece& piece = piece_at(i);
    if (!piece.has_range()) continue;
    left.begin = std::min(left.begin, piece.begin);
    left.end = std::max(left.end, piece.end);
  }
  return left.end == 0 ? Left{} : left;
}

void BodyReader::let_go() {
  ENCORE_CHECK(cursor_, "a body that is let go was read");
  cursor_.reset();
  body_ = {};
  shown_ = 0;
  is_between_bodies_ = true;
}

bool BodyReader::go_on_in(store::BodyRef body, std::uint64_t shift) {
  ENCORE_CHECK(is_between_bodies_ && body, "one body follows the other");
  const std::uint64_t begin = left().begin;
  ENCORE_CHECK(begin >= shift && !at_end(), "what is left lies in the other body");
  for (std::size_t i = piece_; i < pieces_; ++i) {
    Piece& piece = piece_at(i);
    if (!piece.has_range()) continue;
    piece.begin -= shift;
    if (piece.end != kOpenEnd) piece.end -= shift;
  }
  is_between_bodies_ = false;
  return set_body(std::move(body), begin - shift);
}

// Ranges of a body that is still coming: what lies before the range is read over.
bool BodyReader::skip_to(std::uint64_t position) {
  if (cursor_->position() > position) {
    // Parts in another order than the body's: only from a body that is all there.
    cursor_ = body_->open(position);
    return cursor_.has_value();
  }
  while (cursor_->position() < position) {
    std::array<iovec, kSkippedPartsMax> parts;
    const std::size_t bytes = cursor_->peek(parts, position - cursor_->position()).bytes;
    if (bytes == 0) return false;
    cursor_->advance(bytes);
  }
  return true;
}

BodyReader::Peeked BodyReader::peek_body(const Piece& piece, std::span<iovec> room,
                                         std::size_t bytes_max) {
  if (!cursor_) return {.state = is_between_bodies_ ? State::kWaiting : State::kBroken};
  // The state is read before the bytes: what came before the end is then seen.
  const store::BodyState state = body_->state();
  if (skip_to(piece.begin)) {
    const std::uint64_t wanted = std::min<std::uint64_t>(piece.end - piece.begin, bytes_max);
    const auto peeked = cursor_->peek(room, wanted);
    if (peeked.bytes != 0) return {State::kReady, peeked.parts, peeked.bytes};
  } else if (!cursor_) {
    return {.state = State::kBroken};  // the bytes that it goes back to are gone
  }
  if (state == store::BodyState::kGrowing) return {.state = State::kWaiting};
  const bool whole = piece.end == kOpenEnd && state == store::BodyState::kComplete;
  return {.state = whole ? State::kEnd : State::kBroken};
}

BodyReader::Peeked BodyReader::peek(std::span<iovec> room, std::size_t bytes_max) {
  ENCORE_CHECK(room.size() >= 2 && bytes_max != 0, "there is room for what is peeked at");
  shown_ = 0;
  if (at_end()) return {};
  Piece& piece = piece_at(piece_);
  Peeked peeked;
  const std::size_t text_left = std::min(piece.text.size() - text_read_, bytes_max);
  if (text_left != 0) {
    room[0] = {piece.text.data() + text_read_, text_left};
    peeked = {State::kReady, 1, text_left};
  }
  if (piece.has_range() && text_left < bytes_max) {
    const Peeked more = peek_body(piece, room.subspan(peeked.parts), bytes_max - text_left);
    // A broken or open end shows once the text is read.
    if (more.state == State::kReady || text_left == 0) peeked.state = more.state;
    peeked.parts += more.parts;
    peeked.bytes += more.bytes;
    if (peeked.state == State::kEnd) ++piece_;
  }
  shown_ = peeked.bytes;
  return peeked;
}

void BodyReader::advance(std::size_t bytes) {
  ENCORE_CHECK(bytes <= shown_, "what is read was shown");
  shown_ -= bytes;
  if (bytes == 0) return;
  Piece& piece = piece_at(piece_);
  const std::size_t from_text = std::min(bytes, piece.text.size() - text_read_);
  text_read_ += from_text;
  const std::size_t from_body = bytes - from_text;
  if (from_body != 0) {
    cursor_->advance(from_body);
    body_bytes_ += from_body;
    piece.begin += from_body;
  }
  if (text_read_ != piece.text.size() || piece.has_range()) return;
  piece.text.clear();
  text_read_ = 0;
  ++piece_;
}

std::uint64_t BodyReader::held_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t i = piece_; i < pieces_; ++i) bytes += piece_at(i).text.size();
  if (cursor_) bytes += cursor_->body().held_for(cursor_->position());
  // A coded body holds its encoder, and what that has not read yet.
  if (made_from_ != nullptr && !at_end()) bytes += made_by_bytes_ + made_from_->held_bytes();
  return bytes;
}

}  // namespace encore::server
