// Files of an authority: two in a directory. Functions of one thread; errors show the file.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "proxy/ca/making.h"

namespace encore::ca {

inline constexpr std::string_view kCertificateName = "ca.crt";
inline constexpr std::string_view kKeyName = "ca.key";

std::string certificate_file_in(const std::string& directory);
std::string key_file_in(const std::string& directory);

// Makes both, the directory where there is none, and the key for its owner alone. Errors: either is
// there, and then nothing is written; a link counts as being there.
Result<void> write_authority(const std::string& directory, const CreatedCa& made);

}  // namespace encore::ca
