// VariantKeys: the variant keys (vary.h) of one request, each built at most once, however many
// stored responses and transfers it is compared with. Thread-compatible.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/http/message.h"
#include "proxy/http/vary.h"

namespace encore::http {

class VariantKeys {
 public:
  // Both are borrowed.
  VariantKeys(const Fields& request, const VaryOptions& options)
      : request_(request), options_(options) {}

  // The key for these selecting names; null where make() was not called for them. Cheap: meant for
  // where a lock is held.
  const std::string* find(std::string_view names) const;
  // The same, built now where it was not yet. REQUIRES: as write_variant_key().
  const std::string& make(std::string_view names);

 private:
  const Fields& request_;
  const VaryOptions& options_;
  std::vector<std::pair<std::string, std::string>> keys_;  // names, key
};

}  // namespace encore::http
