#include "proxy/net/syscalls.h"

#include <unistd.h>

namespace encore::net {

Syscalls syscalls = {
    .read = ::read,
    .writev = ::writev,
    .accept4 = ::accept4,
    .connect = ::connect,
    .socket = ::socket,
};

}  // namespace encore::net
