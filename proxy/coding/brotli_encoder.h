// The encoder of brotli. Null where there is no memory.
#pragma once

#include <memory>

#include "proxy/coding/encoder.h"

namespace encore::coding {

std::unique_ptr<Encoder> make_brotli_encoder(int level);

}  // namespace encore::coding
