#include "proxy/process/health_checks.h"

#include <utility>

#include "base/check.h"

namespace encore::server {

void HealthChecks::use(std::shared_ptr<const Runtime> runtime) {
  checks_.clear();
  runtime_ = std::move(runtime);
  for (const config::Origin& origin : runtime_->config.origin) {
    if (origin.health_path.empty()) continue;
    const Route* route = runtime_->router.find(origin.host, origin.path);
    ENCORE_CHECK(route != nullptr, "each origin of a config has its route");
    const ServerGroup& group = route->group();
    const auto seen = group.look();
    for (std::size_t i = 0; i < group.servers().size(); ++i) {
      checks_.push_back(std::make_unique<HealthCheck>(
          HealthCheck::Parts{.loop = loop_,
                             .resolver = resolver_,
                             .stats = stats_,
                             .origin = origin,
                             .group = group,
                             .server = group.servers()[i],
                             .is_down = seen[i].standing == ServerGroup::Standing::kDown}));
    }
  }
}

}  // namespace encore::server
