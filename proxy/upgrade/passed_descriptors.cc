#include "proxy/upgrade/passed_descriptors.h"

#include <cstring>

#include "base/check.h"

namespace encore::upgrade {

void carry(msghdr& head, std::span<char> control, const std::vector<int>& descriptors) {
  if (descriptors.empty()) return;
  const std::size_t size = descriptors.size() * sizeof(int);
  ENCORE_CHECK(control.size() >= CMSG_SPACE(size), "more descriptors go in several messages");
  head.msg_control = control.data();
  head.msg_controllen = CMSG_SPACE(size);
  cmsghdr* const rights = CMSG_FIRSTHDR(&head);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(size);
  std::memcpy(CMSG_DATA(rights), descriptors.data(), size);
}

}  // namespace encore::upgrade
