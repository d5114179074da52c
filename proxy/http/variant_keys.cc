#include "proxy/http/variant_keys.h"

namespace encore::http {

const std::string* VariantKeys::find(std::string_view names) const {
  for (const auto& [known, key] : keys_) {
    if (known == names) return &key;
  }
  return nullptr;
}

const std::string& VariantKeys::make(std::string_view names) {
  if (const std::string* known = find(names)) return *known;
  auto& [kept, key] = keys_.emplace_back(names, std::string());
  write_variant_key(kept, request_, options_, key);
  return key;
}

}  // namespace encore::http
