// Descriptors that a message to another process carries in addition to its bytes (SCM_RIGHTS,
// unix(7)).
#pragma once

#include <sys/socket.h>

#include <span>
#include <vector>

namespace encore::upgrade {

// Lets `head` carry copies of the descriptors, by control data in `control`, which must stay valid
// until the message is sent. Changes nothing without descriptors.
// REQUIRES: control is aligned as a cmsghdr and has CMSG_SPACE(descriptors.size() * sizeof(int))
// bytes.
void carry(msghdr& head, std::span<char> control, const std::vector<int>& descriptors);

}  // namespace encore::upgrade
