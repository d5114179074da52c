// Handling of each request and its answer by clients, for all protocols that they speak. One
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/fuzz/proxy/oracle.h"
#include "tests/fuzz/proxy/ring.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

// For reports.
std::string summary(const Answer& answer, Ending ending);
// The request is about to be sent, at that time.
void note_begun(Ring& ring, const std::shared_ptr<Request>& request, double at,
                const Accounts::Sent& sent);
// It has its whole answer, which came in so many bytes; that is judged. `cuts` as in Accounts.
void note_answered(Ring& ring, const std::shared_ptr<Request>& request, Answer& answer,
                   std::uint64_t bytes, std::uint64_t cuts = 0);

}  // namespace encore::proxyfuzz
