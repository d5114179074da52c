#include "proxy/net/tls_bio.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "proxy/net/syscalls.h"

namespace encore::net {
namespace {

// The BIO's data.
struct State {
  int descriptor = -1;
  bool ended = false;
  std::vector<std::byte> fed = {};  // given first
  std::size_t given = 0;            // bytes of it
  int reads_left = 0;
};

State& state_of(BIO* bio) { return *static_cast<State*>(BIO_get_data(bio)); }

std::size_t take_fed(State& state, char* bytes, std::size_t size) {
  const std::size_t taken = std::min(size, state.fed.size() - state.given);
  std::memcpy(bytes, state.fed.data() + state.given, taken);
  state.given += taken;
  if (state.given == state.fed.size()) {
    state.fed = {};
    state.given = 0;
  }
  return taken;
}

int read_bytes(BIO* bio, char* bytes, std::size_t size, std::size_t* got) {
  BIO_clear_retry_flags(bio);
  if (!state_of(bio).fed.empty()) {
    *got = take_fed(state_of(bio), bytes, size);
    return 1;
  }
  if (state_of(bio).reads_left-- <= 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  errno = 0;
  const ssize_t result = syscalls.recv(state_of(bio).descriptor, bytes, size, 0);
  if (result > 0) {
    *got = static_cast<std::size_t>(result);
    return 1;
  }
  if (result == 0) state_of(bio).ended = true;
  if (result < 0 && is_transient(errno)) BIO_set_retry_read(bio);
  return static_cast<int>(result);
}

int write_bytes(BIO* bio, const char* bytes, std::size_t size, std::size_t* put) {
  BIO_clear_retry_flags(bio);
  errno = 0;
  const ssize_t result = syscalls.send(state_of(bio).descriptor, bytes, size, MSG_NOSIGNAL);
  if (result > 0) {
    *put = static_cast<std::size_t>(result);
    return 1;
  }
  if (result < 0 && is_transient(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(result);
}

long control(BIO* bio, int command, long, void*) {
  switch (command) {
    case BIO_CTRL_FLUSH:
      return 1;
    case BIO_CTRL_EOF:
      return state_of(bio).ended ? 1 : 0;
    default:
      return 0;
  }
}

int destroy(BIO* bio) {
  delete static_cast<State*>(BIO_get_data(bio));
  return 1;
}

BIO_METHOD* make_method() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "encore");
  if (method == nullptr) return nullptr;
  BIO_meth_set_read_ex(method, &read_bytes);
  BIO_meth_set_write_ex(method, &write_bytes);
  BIO_meth_set_ctrl(method, &control);
  BIO_meth_set_destroy(method, &destroy);
  return method;
}

}  // namespace

BIO* new_descriptor_bio(int descriptor) {
  static BIO_METHOD* const method = make_method();
  BIO* bio = method == nullptr ? nullptr : BIO_new(method);
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, new State{.descriptor = descriptor});
  BIO_set_init(bio, 1);
  return bio;
}

void allow_reads(BIO* bio, int reads) { state_of(bio).reads_left = reads; }

void feed_bio(BIO* bio, std::span<const std::byte> bytes) {
  State& state = state_of(bio);
  state.fed.insert(state.fed.end(), bytes.begin(), bytes.end());
}

bool has_fed_bio(BIO* bio) { return !state_of(bio).fed.empty(); }

}  // namespace encore::net
