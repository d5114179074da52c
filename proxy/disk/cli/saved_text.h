// The facts about the response in the text of a record, as the proxy has written it. Pure,
// thread-safe; bytes from a disk are not trusted.
#pragma once

#include <string>
#include <string_view>

#include "proxy/disk/purge_frame.h"
#include "proxy/disk/record.h"

namespace encore::disk {

// Views of the record's text.
struct SavedText {
  std::string_view realm;  // which listener's it is
  std::string_view url;    // the key behind its realm
  std::string_view names;  // names of the request's fields that it varies by, with commas
  std::string_view tags;   // each with a line feed
};
// If the proxy has not written the record in this form, the whole key is the URL.
SavedText saved_text(const RecordText& text);

// Without port, in brackets where it is an address of IPv6; empty: the URL has none.
std::string_view host_of(std::string_view url);

// True if the purge is of this record: it is older, and has the key, the tag or the prefix, or
// is what a ban holds for.
bool is_purged(const Purge& purge, const RecordFields& fields, const RecordText& text);

using IsPurged = bool (*)(const Purge& purge, const RecordFields& fields, const RecordText& text);

// Returns a text that is safe for a terminal: each byte that is not visible ASCII is %XX.
std::string shown_text(std::string_view text);

}  // namespace encore::disk
