#include "base/removed_options.hpp"

#include <algorithm>
#include <array>

#include "base/options_fields.hpp"
#include "base/text.hpp"

namespace kedge {
namespace {

struct RemovedOption {
  std::string_view name;
  std::string_view advice;
};

constexpr std::array kRemoved = {
    RemovedOption{"store.io", "set io (KEDGE_IO), which is for the store and the prefix"},
    RemovedOption{"persistent.io", "set io (KEDGE_IO), which is for the store and the prefix"},
    RemovedOption{"persistent.latest", "remove it, the file latest is always written"},
    RemovedOption{"persistent.view_limit", "remove it, the limit is 100000 shards"},
    RemovedOption{"redundancy.piece_bytes", "remove it, the size of messages is automatic"},
    RemovedOption{"redundancy.depth", "remove it, the number of messages in flight is automatic"},
    RemovedOption{"open.fresh", "set KEDGE_START=fresh in the environment of the one start"},
    RemovedOption{"open.adopt_store", "set KEDGE_START=adopt in the environment of the one start"},
    RemovedOption{"open.accept_fingerprint", "set KEDGE_START=accept in the environment of the one start"},
    RemovedOption{"device.direct", "set device.path (KEDGE_DEVICE_PATH) to auto or buffers"},
    RemovedOption{"device.gds", "set device.path (KEDGE_DEVICE_PATH) to auto or gds"},
    RemovedOption{"topology.ranks_per_node",
                  "set KEDGE_TEST_RANKS_PER_NODE in the environment of tests that simulate nodes"},
};

std::optional<std::string> describe_removed(std::string_view wanted, const auto& name_of) {
  const auto* const one = std::ranges::find(kRemoved, wanted, name_of);
  if (one == kRemoved.end()) return std::nullopt;
  return compose("there is no option {} any more; {}", wanted, one->advice);
}

}  // namespace

std::optional<std::string> describe_removed_option(std::string_view name) {
  return describe_removed(name, &RemovedOption::name);
}

std::optional<std::string> describe_removed_variable(std::string_view variable) {
  return describe_removed(variable, [](const RemovedOption& one) { return variable_name(one.name); });
}

}  // namespace kedge
