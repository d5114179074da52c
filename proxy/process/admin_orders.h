// Orders that the admin listener takes: purges, what changes the process, and its memory of
// admission. The caller has checked the method and who may ask. Confined to the main thread.
#pragma once

#include <cstdint>

#include "proxy/admin/admin_message.h"
#include "proxy/process/process_control.h"

namespace encore::server {

// Each sends its response when it is done.
void answer_purge(ProcessControl& process, const AdminRequest& request, AdminReply to);
void answer_clear(ProcessControl& process, const AdminRequest& request, AdminReply to);
void answer_reload(ProcessControl& process, AdminReply to);
void answer_upgrade(ProcessControl& process, AdminReply to);
void answer_drain(ProcessControl& process, AdminReply to);
void answer_memory(ProcessControl& process, AdminReply to);
void answer_adopt(ProcessControl& process, AdminRequest& request, AdminReply to);

// The largest memory that is adopted, in bytes; 0: none.
std::uint64_t memory_body_max(const ProcessControl& process);

}  // namespace encore::server
