// Parses the texts of a config. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace encore::config {

// In quotation marks, as a string of TOML.
std::string in_quotes(std::string_view text);

// Each gives the text as it is kept.
Result<std::string> check_host_pattern(std::string_view text);
Result<std::string> check_host_name(std::string_view text);
Result<std::string> check_intercepted_host(std::string_view text);
Result<std::string> check_path_prefix(std::string_view text);
Result<std::string> check_folder_or_empty(std::string_view text);
Result<std::string> check_published(std::string_view text);
Result<std::string> check_field_name(std::string_view text);
Result<std::string> check_token(std::string_view text);
Result<std::string> check_host_glob(std::string_view text);
Result<std::string> check_path_glob(std::string_view text);
Result<std::string> check_method(std::string_view text);
Result<std::string> check_lower_field_or_empty(std::string_view text);
Result<std::string> check_realm(std::string_view text);
Result<std::string> check_query_name(std::string_view text);
Result<std::string> check_lower_query_name(std::string_view text);
Result<std::string> check_seed(std::string_view text);
Result<std::string> check_file_name(std::string_view text);
Result<std::string> check_rule_name(std::string_view text);
Result<std::string> check_glob(std::string_view text);
Result<std::string> check_rule_path(std::string_view text);
Result<std::string> check_prefix_or_empty(std::string_view text);
Result<std::string> check_media_type(std::string_view text);
Result<std::string> check_type_glob(std::string_view text);
Result<std::string> check_coding(std::string_view text);
Result<std::string> check_edited_field(std::string_view text);
Result<std::string> check_client_field(std::string_view text);  // or ""
Result<std::string> check_ignored(std::string_view text);
Result<std::string> check_replacement(std::string_view text);
Result<std::string> check_redirect(std::string_view text);
Result<std::string> check_directives(std::string_view text);
Result<std::string> check_static_text(std::string_view text);
Result<std::string> check_disk_name(std::string_view text);  // a file name, not ""
Result<std::string> check_authority_or_empty(std::string_view text);
Result<std::string> check_target_or_empty(std::string_view text);

}  // namespace encore::config
