#include "proxy/coding/make_encoder.h"

#include "base/check.h"
#include "proxy/coding/brotli_encoder.h"
#include "proxy/coding/gzip_encoder.h"
#include "proxy/coding/zstd_encoder.h"

namespace encore::coding {

std::unique_ptr<Encoder> make_encoder(Coding coding, int level) {
  const Levels levels = levels_of(coding);
  ENCORE_CHECK(level >= levels.min && level <= levels.max, "a coding has this level");
  switch (coding) {
    case Coding::kZstd:
      return make_zstd_encoder(level);
    case Coding::kBrotli:
      return make_brotli_encoder(level);
    case Coding::kGzip:
      return make_gzip_encoder(level);
  }
  return nullptr;
}

}  // namespace encore::coding
