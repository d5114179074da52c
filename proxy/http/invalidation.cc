#include "proxy/http/invalidation.h"

#include <algorithm>

namespace encore::http {
namespace {

std::string key_of(const Target& target, const KeyOptions& options) {
  std::string key(key_bytes_max(target), '\0');
  key.resize(write_key(target, options, key).bytes);
  return key;
}

}  // namespace

std::vector<std::string> invalidated_keys(const Target& target, const ResponseHead& response,
                                          const KeyOptions& options) {
  std::vector<std::string> keys = {key_of(target, options)};
  for (const FieldId id : {FieldId::kLocation, FieldId::kContentLocation}) {
    response.fields.for_each(id, [&](const Field& field) {
      std::string storage;
      Target other;
      if (!resolve_reference(field.value, target, storage, other)) return;
      if (options.scheme) set_scheme(other, *options.scheme);
      // Nobody may invalidate what another origin answers for (RFC 9111 4.4).
      if (!same_origin(target, other)) return;
      std::string key = key_of(other, options);
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
    });
  }
  return keys;
}

}  // namespace encore::http
