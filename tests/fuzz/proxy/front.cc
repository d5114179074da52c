#include "tests/fuzz/proxy/front.h"

#include "tests/fuzz/proxy/epoll_loop.h"

namespace encore::proxyfuzz {

int TwoListeners::connect(Random& random, Asker& asker, int receive_buffer) {
  asker.listener = random.percent(30) ? 1 : 0;
  asker.from_second = random.percent(30);
  return connect_from(asker.from_second ? "127.0.0.2" : "127.0.0.1", process_.port(asker.listener),
                      receive_buffer);
}

}  // namespace encore::proxyfuzz
