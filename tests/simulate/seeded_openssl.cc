// A provider would do the same in ten times the lines.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "tests/simulate/seeded_openssl.h"

#include <openssl/rand.h>

#include <optional>

#include "base/check.h"

namespace encore::simulate {
namespace {

std::optional<proxyfuzz::Random> stream;

int give_bytes(unsigned char* into, int size) {
  for (int i = 0; i < size; ++i) into[i] = static_cast<unsigned char>(stream->next());
  return 1;
}

int tell_status() { return 1; }

const RAND_METHOD kMethod = {.seed = nullptr,
                             .bytes = &give_bytes,
                             .cleanup = nullptr,
                             .add = nullptr,
                             .pseudorand = &give_bytes,
                             .status = &tell_status};

}  // namespace

SeededOpenssl::SeededOpenssl(proxyfuzz::Random random) {
  ENCORE_CHECK(!stream, "one seed at a time");
  stream = random;
  ENCORE_CHECK(RAND_set_rand_method(&kMethod) == 1, "OpenSSL takes another source");
}

SeededOpenssl::~SeededOpenssl() {
  RAND_set_rand_method(nullptr);
  stream.reset();
}

}  // namespace encore::simulate
