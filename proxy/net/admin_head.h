// The head of a request to the admin listener, read before evhttp does: whether it is whole, what
// it says, and the same head without the body that follows it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/net/admin_message.h"

namespace encore::net {

// The bytes of the head at the start of `bytes`, the empty line included; npos where it has not
// ended. Lines end as evhttp has it, with LF or CRLF. What lies before `from` is known to hold no
// end but for its last two bytes.
std::size_t admin_head_size(std::string_view bytes, std::size_t from = 0);

// Method, path, query and fields of a whole head; nothing where a line is no field.
std::optional<AdminRequest> read_admin_head(std::string_view head);

// What the head says of the body: its length, the largest where it says several; kUnstated where it
// comes in chunks; 0 where there is none. What is no number counts as none: evhttp refuses it.
inline constexpr std::uint64_t kUnstated = UINT64_MAX;
std::uint64_t stated_body(const AdminRequest& head);

// The same request as one that brings no body and is the last of its connection.
std::string without_body(std::string_view head);

}  // namespace encore::net
