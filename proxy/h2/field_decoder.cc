#include "proxy/h2/field_decoder.h"

#include <nghttp2/nghttp2.h>

#include <new>

#include "proxy/h2/malformed.h"

namespace encore::h2 {
namespace {

// Measured with nghttp2 1.52: a new decoder, and what an entry of its table takes in addition to
// its text, which are three pieces of memory.
constexpr std::size_t kNewBytes = 1296;
constexpr std::size_t kEntryBytes = 200;
constexpr std::size_t kStaticEntries = 61;

std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

void FieldDecoder::Free::operator()(nghttp2_hd_inflater* inflater) const {
  nghttp2_hd_inflate_del(inflater);
}

FieldDecoder::FieldDecoder() {
  nghttp2_hd_inflater* made = nullptr;
  if (nghttp2_hd_inflate_new(&made) != 0) throw std::bad_alloc();
  inflater_.reset(made);
}

std::size_t FieldDecoder::memory_bytes() const {
  const std::size_t entries =
      nghttp2_hd_inflate_get_num_table_entries(inflater_.get()) - kStaticEntries;
  const std::size_t text = nghttp2_hd_inflate_get_dynamic_table_size(inflater_.get()) -
                           entries * ListSize::kFieldOverhead;
  return kNewBytes + entries * kEntryBytes + text;
}

FieldDecoder::Status FieldDecoder::decode(std::string_view piece, bool is_last, FieldSink& sink) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(piece.data());
  std::size_t left = piece.size();
  while (true) {
    nghttp2_nv field;
    int flags = 0;
    const ssize_t used =
        nghttp2_hd_inflate_hd2(inflater_.get(), &field, &flags, at, left, is_last ? 1 : 0);
    if (used < 0) return Status::kBroken;
    at += used;
    left -= static_cast<std::size_t>(used);
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
      if (!sink.on_field(text_of(field.name, field.namelen),
                         text_of(field.value, field.valuelen))) {
        return Status::kStopped;
      }
    }
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
      nghttp2_hd_inflate_end_headers(inflater_.get());
      return Status::kEnd;
    }
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && left == 0) {
      return is_last ? Status::kBroken : Status::kMore;
    }
  }
}

}  // namespace encore::h2
