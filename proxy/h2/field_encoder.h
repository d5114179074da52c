// Header blocks that are sent (RFC 7541), made from heads as HTTP/1.1 writes them. Names become
// lower case on the way, fields of a connection are left out. Stateless. Fields of the static table
// go by their index, all others as literals that enter no table. So a block costs no memory and no
// search, and the size of a response tells nothing of another (docs/decisions/0471).
//
// Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace encore::h2 {

// Says that no table is used. Belongs in front of a connection's first block, and of the one behind
// each change of the peer's table size (RFC 7541 4.2).
void append_no_table(std::string& block);

void append_status(unsigned status, std::string& block);
// REQUIRES: `name` is a pseudo field's, with its colon.
void append_pseudo(std::string_view name, std::string_view value, std::string& block);

// Appends the fields of whole lines, "Name: value" with CRLF. An empty line is passed over.
// `length` gets the value of Content-Length where there is one.
void append_fields(std::string_view lines, std::string& block,
                   std::optional<std::uint64_t>& length);

// Appends a response: of the pieces, which are whole lines, the first begins with the status line.
// Returns the status; 0 where that is none.
unsigned append_response(std::span<const std::string_view> pieces, std::string& block,
                         std::optional<std::uint64_t>& length);

}  // namespace encore::h2
