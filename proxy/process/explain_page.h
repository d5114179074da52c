// /api/explain and the page /explain: what is made of a request, as admin pages. Main thread.
#pragma once

#include <functional>
#include <string_view>

#include "base/error.h"
#include "proxy/admin/admin_message.h"
#include "proxy/process/explain.h"

namespace encore::server {

inline constexpr std::string_view kExplainApi = "/api/explain";
inline constexpr std::string_view kExplainPage = "/explain";

// By the query: url, method, header (a field, as often as needed), client, listener and, for the
// first of the two pages, format (json or text). 400 where it cannot be explained.
AdminResponse answer_explain(const AdminRequest& request,
                             const std::function<Result<Explanation>(const Explained&)>& explain);

// The query that asks for the same.
std::string explain_query(const Explained& asked);

}  // namespace encore::server
