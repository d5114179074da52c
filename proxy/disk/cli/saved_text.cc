#include "proxy/disk/cli/saved_text.h"

#include <algorithm>
#include <span>

#include "proxy/settings/ban.h"
#include "proxy/settings/router.h"
#include "proxy/transfer/response.h"
#include "proxy/transfer/saved_meta.h"

namespace encore::disk {
namespace {

bool has_line(std::string_view lines, std::string_view line) {
  while (!lines.empty()) {
    const std::string_view next = lines.substr(0, lines.find('\n'));
    if (next == line) return true;
    lines.remove_prefix(std::min(next.size() + 1, lines.size()));
  }
  return false;
}

// A prefix of any reverse listener is of all of them.
bool has_prefix(std::string_view key, std::string_view prefix) {
  return key.size() >= server::kRealmBytes && prefix.size() >= server::kRealmBytes &&
         key.starts_with(server::kForwardRealm) == prefix.starts_with(server::kForwardRealm) &&
         key.substr(server::kRealmBytes).starts_with(prefix.substr(server::kRealmBytes));
}

bool is_visible(char letter) { return letter > ' ' && letter < '\x7f'; }

bool is_banned(std::string_view ban, const RecordText& text) {
  static server::SavedBans bans;  // compiled once for all records
  const auto meta =
      server::load_meta(std::as_bytes(std::span(text.meta)),
                        {.key_bytes = text.key.size(), .head_bytes = text.head.size()}, {});
  if (!meta) return true;
  const server::HeadParts head{.meta = *meta, .head = text.head};
  return bans.hold(ban, text.key.substr(0, meta->primary_bytes), head.content_type(), head.tags());
}

}  // namespace

SavedText saved_text(const RecordText& text) {
  SavedText saved{.realm = {}, .url = text.key, .names = text.names, .tags = {}};
  // None of its moments is asked for.
  const auto meta =
      server::load_meta(std::as_bytes(std::span(text.meta)),
                        {.key_bytes = text.key.size(), .head_bytes = text.head.size()}, {});
  if (meta) {
    saved.url = text.key.substr(0, meta->primary_bytes);
    saved.tags = text.head.substr(text.head.size() - meta->tag_bytes);
  }
  // A realm ends with a colon, and no URL has one there but behind a scheme.
  if (saved.url.size() > server::kRealmBytes && saved.url[server::kRealmBytes - 1] == ':' &&
      saved.url.substr(server::kRealmBytes).find("://") != std::string_view::npos) {
    saved.realm = saved.url.substr(0, server::kRealmBytes);
    saved.url.remove_prefix(server::kRealmBytes);
  }
  return saved;
}

std::string_view host_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  url.remove_prefix(scheme + 3);
  const std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    return end == std::string_view::npos ? std::string_view() : authority.substr(0, end + 1);
  }
  return authority.substr(0, authority.find(':'));
}

bool is_purged(const Purge& purge, const RecordFields& fields, const RecordText& text) {
  if (fields.version >= purge.version) return false;
  switch (purge.kind) {
    case PurgeKind::kKey:
      return purge.key == fields.key;
    case PurgeKind::kTag:
      return has_line(saved_text(text).tags, purge.pattern);
    case PurgeKind::kPrefix:
      return has_prefix(text.key, purge.pattern);
    case PurgeKind::kBan:
      return is_banned(purge.pattern, text);
  }
  return false;
}

std::string shown_text(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string shown;
  for (const char letter : text) {
    if (is_visible(letter)) {
      shown += letter;
      continue;
    }
    const auto byte = static_cast<unsigned char>(letter);
    shown += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return shown;
}

}  // namespace encore::disk
