// Reads bytes as an engine's replies, and all that may be in them as entries, presences, places and
// kept purges. For the fuzzer, and for its corpus in the unit test.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "proxy/fleet/position.h"
#include "proxy/fleet/presence.h"
#include "proxy/fleet/publications.h"
#include "proxy/fleet/purge_entry.h"
#include "proxy/fleet/reply.h"
#include "proxy/fleet/stream_id.h"

namespace encore::fleet {

inline void check_entry(const Fields& fields) {
  const auto entry = decode(fields);
  (void)is_of_a_node(fields);
  if (!entry) return;
  const auto again = encode(*entry);
  ENCORE_CHECK(again.has_value(), "an entry that was read can be written");
  const auto twice = decode(*again);
  ENCORE_CHECK(twice && *encode(*twice) == *again, "it is the same then");
  const auto joined = merged(std::vector{entry->order, entry->order});
  ENCORE_CHECK(joined.size() <= 3, "purges are joined");
  const auto kept = read_frames(frame({.fields = *again}));
  ENCORE_CHECK(kept.size() == 1 && kept[0].fields == *again, "it can be kept");
}

inline void check_reply(const Reply& reply, std::size_t& parts) {
  ENCORE_CHECK(++parts <= 2 * ReplyReader::kItemsMax, "parts are bounded");
  for (const char c : readable(reply.text)) {
    ENCORE_CHECK(c >= ' ' && c <= '~', "no control byte is shown");
  }
  if (const auto id = parse_stream_id(reply.text)) {
    ENCORE_CHECK(parse_stream_id(to_string(*id)) == id, "a place is read as it is written");
  }
  if (const auto position = decode_position(reply.text)) {
    ENCORE_CHECK(*decode_position(encode(*position)) == *position, "so is a position");
  }
  if (const auto presence = decode_presence(reply.text)) {
    ENCORE_CHECK(decode_presence(encode(*presence)).has_value(), "so is a presence");
  }
  (void)read_frames(reply.text);
  // Lists that are long are mostly parts that did not come.
  constexpr std::size_t kFieldsMax = 1000;
  Fields fields;
  for (const Reply& each : reply.items) {
    if (fields.size() < kFieldsMax) fields.push_back(each.text);
  }
  check_entry(fields);
  NodeTable nodes;
  nodes.read(fields, 1'700'000'000'000);
  ENCORE_CHECK(nodes.report("", 0).size() <= kNodesMax, "nodes are bounded");
  for (const Reply& each : reply.items) {
    if (each.kind != Reply::Kind::kNil) check_reply(each, parts);
  }
}

// `piece`: bytes that come together; 0: all.
inline void read_hostile(std::string_view bytes, std::size_t piece) {
  ReplyReader reader;
  if (piece == 0) piece = std::max<std::size_t>(bytes.size(), 1);
  while (!bytes.empty()) {
    const std::string_view some = bytes.substr(0, piece);
    bytes.remove_prefix(some.size());
    if (!reader.feed(some)) break;
    for (;;) {
      const auto reply = reader.next();
      if (!reply) {
        std::size_t parts = 0;
        return check_reply(reader.take_front(), parts);
      }
      if (!*reply) break;
      std::size_t parts = 0;
      check_reply(**reply, parts);
    }
  }
  std::size_t parts = 0;
  check_reply(reader.take_front(), parts);
}

}  // namespace encore::fleet
