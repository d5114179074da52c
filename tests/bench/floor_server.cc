// The floor: a server that answers every request with canned bytes, one read and one write each.
//   floor_server --port=P --bytes=1024 [--objects=N] [--workers=N]
// With more than one object the target is hashed and chooses one, so that the answer comes out of
// as much memory as a cache of that many objects would touch.
#include <xxhash.h>

#include <vector>

#include "tests/bench/canned.h"

namespace {

class Floor : public encore::bench::Responder {
 public:
  Floor(std::size_t body_bytes, std::size_t objects) {
    for (std::size_t i = 0; i < objects; ++i) {
      objects_.push_back(encore::bench::canned_response(body_bytes, "Age: 1\r\n", i));
    }
  }
  std::string_view respond(std::string_view target) override {
    if (objects_.size() == 1) return objects_.front();
    return objects_[XXH3_64bits(target.data(), target.size()) % objects_.size()];
  }

 private:
  std::vector<std::string> objects_;
};

}  // namespace

int main(int argc, char** argv) {
  using encore::bench::number_argument;
  Floor floor(number_argument(argc, argv, "bytes", 1024),
              number_argument(argc, argv, "objects", 1));
  encore::bench::fork_workers(number_argument(argc, argv, "workers", 1));
  event_base* base = event_base_new();
  auto port = static_cast<std::uint16_t>(number_argument(argc, argv, "port", 0));
  encore::bench::serve(base, port, &floor);
  encore::bench::run_until_signal(base);
  return 0;
}
