#include "proxy/http/interim.h"

namespace encore::http {

InterimAction interim_action(unsigned status, const InterimContext& context) noexcept {
  if (status == 101) return context.asked_upgrade ? InterimAction::kSwitch : InterimAction::kBad;
  if (context.client == Version::kHttp10) return InterimAction::kDrop;
  return status == 100 && context.continue_sent ? InterimAction::kDrop : InterimAction::kForward;
}

Expectation expectation(const RequestHead& request) noexcept {
  // An HTTP/1.0 client's expectation is ignored (RFC 9110 10.1.1).
  if (!request.fields.has(FieldId::kExpect) || request.version == Version::kHttp10) {
    return Expectation::kNone;
  }
  Expectation result = Expectation::kNone;
  request.fields.for_each_member(FieldId::kExpect, [&](std::string_view member) {
    if (!equals_lower(member, "100-continue")) {
      result = Expectation::kUnknown;
    } else if (result == Expectation::kNone) {
      result = Expectation::kContinue;
    }
  });
  return result;
}

}  // namespace encore::http
