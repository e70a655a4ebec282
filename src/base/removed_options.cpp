#include "base/removed_options.hpp"

#include <algorithm>
#include <array>

#include "base/options_fields.hpp"
#include "base/text.hpp"

namespace kedge {
namespace {

struct Removed {
  std::string_view name;
  std::string_view advice;
};

constexpr std::array kRemoved = {
    Removed{"store.io", "set io (KEDGE_IO), which is for the store and the prefix"},
    Removed{"persistent.io", "set io (KEDGE_IO), which is for the store and the prefix"},
    Removed{"persistent.latest", "remove it, the file latest is always written"},
    Removed{"persistent.view_limit", "remove it, the limit is 100000 shards"},
    Removed{"redundancy.piece_bytes", "remove it, the size of messages is automatic"},
    Removed{"redundancy.depth", "remove it, the number of messages in flight is automatic"},
    Removed{"open.fresh", "set KEDGE_START=fresh in the environment of the one start"},
    Removed{"open.adopt_store", "set KEDGE_START=adopt in the environment of the one start"},
    Removed{"open.accept_fingerprint", "set KEDGE_START=accept in the environment of the one start"},
    Removed{"device.direct", "set device.path (KEDGE_DEVICE_PATH) to auto or buffers"},
    Removed{"device.gds", "set device.path (KEDGE_DEVICE_PATH) to auto or gds"},
    Removed{"topology.ranks_per_node", "set KEDGE_TEST_RANKS_PER_NODE in the environment of tests that simulate nodes"},
};

std::optional<std::string> describe(std::string_view wanted, const auto& name_of) {
  const auto* const one = std::ranges::find(kRemoved, wanted, name_of);
  if (one == kRemoved.end()) return std::nullopt;
  return compose("there is no option {} any more; {}", wanted, one->advice);
}

}  // namespace

std::optional<std::string> describe_removed_option(std::string_view name) { return describe(name, &Removed::name); }

std::optional<std::string> describe_removed_variable(std::string_view variable) {
  return describe(variable, [](const Removed& one) { return variable_name(one.name); });
}

}  // namespace kedge
