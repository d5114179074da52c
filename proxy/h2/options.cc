#include "proxy/h2/options.h"

namespace encore::h2 {
namespace {

constexpr std::array<std::string_view, kLimitCount> kLimitNames = {
#define ENCORE_H2_LIMIT(id, name) name,
    ENCORE_H2_LIMITS(ENCORE_H2_LIMIT)
#undef ENCORE_H2_LIMIT
};

}  // namespace

std::string_view to_string(Limit which) noexcept {
  return kLimitNames[static_cast<std::size_t>(which)];
}

}  // namespace encore::h2
