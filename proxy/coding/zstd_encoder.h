// The encoder of zstd. Null where there is no memory.
#pragma once

#include <memory>

#include "proxy/coding/encoder.h"

namespace encore::coding {

std::unique_ptr<Encoder> make_zstd_encoder(int level);

}  // namespace encore::coding
