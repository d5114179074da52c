#include "proxy/net/syscalls.h"

namespace encore::net {

Syscalls syscalls = {
    .recv = ::recv,
    .send = ::send,
    .sendmsg = ::sendmsg,
    .accept4 = ::accept4,
    .connect = ::connect,
    .socket = ::socket,
};

}  // namespace encore::net
