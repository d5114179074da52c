// Which coding a client would rather have (RFC 9110 12.5.3). Pure, thread-safe.
#pragma once

#include <optional>
#include <span>

#include "proxy/coding/coding.h"
#include "proxy/http/message.h"

namespace encore::coding {

// Returns the offered coding with the highest weight, the first of equal ones; nothing: the content
// unchanged. That is also what a request gets that has no Accept-Encoding, that names none of those
// offered, or that gives `identity` a higher weight than each of them. A coding that is not named
// has the weight of `*`, if there is one. A weight that cannot be read counts as 0.
std::optional<Coding> choose(const http::Fields& request, std::span<const Coding> offered);

}  // namespace encore::coding
