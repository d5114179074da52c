#include "proxy/settings/compression.h"

#include <algorithm>

#include "base/mutex.h"
#include "proxy/http/cache_control.h"
#include "proxy/settings/glob.h"
#include "proxy/settings/rules.h"

namespace encore::server {
namespace {

// More settings than these in a row of reloads are taken for those so many before: what is
// remembered of an object that nobody has asked for since may then be wrong about its type.
constexpr unsigned kNumbersMax = 127;

// The same number for the same settings, as long as no others come between.
class Numbers {
 public:
  std::uint8_t number_for(const config::Compression& settings) {
    const MutexLock lock(mutex_);
    if (number_ == 0 || settings != last_) {
      last_ = settings;
      number_ = number_ % kNumbersMax + 1;
    }
    return static_cast<std::uint8_t>(number_);
  }

 private:
  Mutex mutex_;
  config::Compression last_ ENCORE_GUARDED_BY(mutex_);
  unsigned number_ ENCORE_GUARDED_BY(mutex_) = 0;
};

Numbers& numbers() {
  static Numbers numbers;
  return numbers;
}

bool has_content_for_all(unsigned status) {
  return status == 200 || status == 203 || status == 403 || status == 404 || status == 410;
}

}  // namespace

Compression::Compression(const config::Compression& settings)
    : types_(settings.types),
      min_bytes_(settings.min_size_bytes),
      memory_bytes_(settings.memory_bytes),
      number_(numbers().number_for(settings)) {
  using coding::Coding;
  constexpr std::array kAll = {Coding::kZstd, Coding::kBrotli, Coding::kGzip};
  for (const std::string& name : settings.codings) {
    const auto* found = std::ranges::find(kAll, name, coding::to_string);
    if (found != kAll.end()) offered_.push_back(*found);
  }
  levels_[coding::number_of(Coding::kZstd)] = static_cast<int>(settings.zstd_level);
  levels_[coding::number_of(Coding::kBrotli)] = static_cast<int>(settings.br_level);
  levels_[coding::number_of(Coding::kGzip)] = static_cast<int>(settings.gzip_level);
}

bool Compression::covers_type(std::string_view content_type) const {
  const std::string type = media_type(content_type);
  return !type.starts_with("multipart/") &&
         std::ranges::any_of(types_,
                             [&type](const std::string& glob) { return glob_matches(glob, type); });
}

bool Compression::covers(const http::ResponseHead& response,
                         std::optional<std::uint64_t> length) const {
  using http::FieldId;
  const http::Fields& fields = response.fields;
  if (!has_content_for_all(response.status) || (length && *length < min_bytes_)) return false;
  if (fields.has_any({FieldId::kContentEncoding, FieldId::kContentRange}) ||
      fields.count(FieldId::kContentType) != 1) {
    return false;
  }
  return covers_type(fields.value(FieldId::kContentType)) &&
         !fields.list_has(FieldId::kCacheControl, "no-transform");
}

}  // namespace encore::server
