#include "proxy/disk/disk_report.h"

namespace encore::disk {

std::string_view to_string(DiskCondition condition) {
  switch (condition) {
    case DiskCondition::kLoading:
      return "loading";
    case DiskCondition::kInService:
      return "in-service";
    case DiskCondition::kWritesPaused:
      return "writes-paused";
    case DiskCondition::kOffline:
      return "offline";
  }
  return "";
}

}  // namespace encore::disk
