#include "cache/types.h"

#include <array>

#include "cache/events.h"

namespace encore::cache {
namespace {

#define ENCORE_NAME(id, name, ...) std::string_view(name),
#define ENCORE_STORED(id, name, stored, outcome) stored,
constexpr std::array kReasonNames = {ENCORE_ADMIT_REASONS(ENCORE_NAME)};
constexpr std::array kReasonStored = {ENCORE_ADMIT_REASONS(ENCORE_STORED)};
constexpr std::array kKindNames = {ENCORE_EVENT_KINDS(ENCORE_NAME)};
#undef ENCORE_STORED
#undef ENCORE_NAME
constexpr std::array<std::string_view, 3> kStateNames = {"miss", "fresh", "stale"};
constexpr std::array<std::string_view, 3> kReserveNames = {"reserved", "too-large", "full"};
constexpr std::array<std::string_view, 6> kCommitNames = {"stored", "replaced",   "too-large",
                                                          "full",   "superseded", "refused"};
constexpr std::array<std::string_view, 5> kFreshenNames = {"freshened", "absent", "too-large",
                                                           "full", "freshened-on-disk"};

template <typename Names, typename Enum>
std::string_view name_of(const Names& names, Enum value) {
  const auto i = static_cast<std::size_t>(value);
  return i < names.size() ? names[i] : "?";
}

}  // namespace

std::string_view to_string(LookupState state) noexcept { return name_of(kStateNames, state); }
std::string_view to_string(AdmitReason reason) noexcept { return name_of(kReasonNames, reason); }
std::string_view to_string(ReserveOutcome outcome) noexcept {
  return name_of(kReserveNames, outcome);
}
std::string_view to_string(CommitOutcome outcome) noexcept {
  return name_of(kCommitNames, outcome);
}
std::string_view to_string(FreshenOutcome outcome) noexcept {
  return name_of(kFreshenNames, outcome);
}
std::string_view to_string(EventKind kind) noexcept { return name_of(kKindNames, kind); }
bool is_stored(AdmitReason reason) noexcept {
  return kReasonStored[static_cast<std::size_t>(reason)];
}

}  // namespace encore::cache
