// The pairs of a TlsServer: read from their files, and again where those have changed.
#include <algorithm>
#include <utility>

#include "proxy/net/self_signed.h"
#include "proxy/net/tls_identity.h"
#include "proxy/net/tls_server.h"

namespace encore::net {
namespace {

using Identity = std::shared_ptr<const TlsIdentity>;

TlsIdentity::Files files_of(const TlsServer::Pair& pair) {
  return {.certificate = pair.certificate_file, .key = pair.key_file, .ocsp = pair.ocsp_file};
}

bool is_missing(const TlsIdentity::Marks& marks) { return !marks[0].exists || !marks[1].exists; }

Result<Identity> load_pair(const TlsServer::Pair& pair, WallTime now) {
  auto identity = TlsIdentity::load(files_of(pair), now);
  if (!identity) return std::unexpected(identity.error());
  return std::make_shared<const TlsIdentity>(std::move(*identity));
}

// A pair whose files are missing. `known`: those of before.
Result<Identity> stand_in(const TlsServer::Pair& pair, const std::vector<Identity>& known,
                          WallTime now) {
  const TlsIdentity::Files files = files_of(pair);
  const auto same = std::ranges::find_if(known, [&](const Identity& each) {
    return each->files == files && each->names == pair.stand_in_names;
  });
  if (same != known.end() && (*same)->is_stand_in) return *same;
  auto made = make_self_signed(pair.stand_in_names, now);
  if (!made) return std::unexpected(made.error());
  made->files = files;
  made->marks = TlsIdentity::marks_of(files);
  return std::make_shared<const TlsIdentity>(std::move(*made));
}

// True if a certificate of these files is in use, which no stand-in may replace.
bool has_real(const TlsServer::Pair& pair, const std::vector<Identity>& known) {
  return std::ranges::any_of(known, [&](const Identity& each) {
    return !each->is_stand_in && each->files.certificate == pair.certificate_file;
  });
}

}  // namespace

Result<std::shared_ptr<const TlsServer>> TlsServer::create(
    const Options& options, std::span<const std::shared_ptr<const TlsServer>> before) {
  Identities known;
  for (const auto& server : before) {
    known.insert(known.end(), server->identities_.begin(), server->identities_.end());
  }
  Identities identities;
  for (const Pair& pair : options.pairs) {
    const bool stands_in = !pair.stand_in_names.empty() && !has_real(pair, known) &&
                           is_missing(TlsIdentity::marks_of(files_of(pair)));
    auto identity = stands_in ? stand_in(pair, known, options.now) : load_pair(pair, options.now);
    if (!identity) return std::unexpected(identity.error());
    identities.push_back(std::move(*identity));
  }
  return make(options, std::move(identities));
}

TlsServer::Renewal TlsServer::renew(const Options& options) const {
  Renewal renewal{.faults = std::vector<std::string>(identities_.size())};
  Identities identities = identities_;
  for (std::size_t i = 0; i < identities.size() && i < options.pairs.size(); ++i) {
    const TlsIdentity::Marks marks = TlsIdentity::marks_of(files_of(options.pairs[i]));
    if (marks == identities[i]->marks) continue;
    // The second file is about to come.
    if (identities[i]->is_stand_in && is_missing(marks)) continue;
    auto identity = load_pair(options.pairs[i], options.now);
    if (!identity) {
      renewal.faults[i] = identity.error().message;
      continue;
    }
    identities[i] = std::move(*identity);
    renewal.taken.push_back(i);
  }
  if (renewal.taken.empty()) return renewal;
  Options same = options;
  same.tickets = tickets_;
  auto server = make(same, std::move(identities), this);
  if (server) {
    renewal.server = std::move(*server);
    return renewal;
  }
  for (const std::size_t place : renewal.taken) renewal.faults[place] = server.error().message;
  renewal.taken.clear();
  return renewal;
}

}  // namespace encore::net
