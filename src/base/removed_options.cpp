#include "base/removed_options.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace kedge {
namespace {

struct Removed {
  std::string_view name;
  std::string_view variable;
  std::string_view advice;
};

constexpr std::array kRemoved = {
    Removed{"store.io", "KEDGE_STORE_IO", "set io (KEDGE_IO), which is for the store and the prefix"},
    Removed{"persistent.io", "KEDGE_PERSISTENT_IO", "set io (KEDGE_IO), which is for the store and the prefix"},
    Removed{"persistent.latest", "KEDGE_PERSISTENT_LATEST", "remove it, the file latest is always written"},
    Removed{"persistent.view_limit", "KEDGE_PERSISTENT_VIEW_LIMIT", "remove it, the limit is 100000 shards"},
    Removed{"redundancy.piece_bytes", "KEDGE_REDUNDANCY_PIECE_BYTES", "remove it, the size of messages is automatic"},
    Removed{"redundancy.depth", "KEDGE_REDUNDANCY_DEPTH", "remove it, the number of messages in flight is automatic"},
    Removed{"open.fresh", "KEDGE_OPEN_FRESH", "set KEDGE_START=fresh in the environment of the one start"},
    Removed{"open.adopt_store", "KEDGE_OPEN_ADOPT_STORE", "set KEDGE_START=adopt in the environment of the one start"},
    Removed{"open.accept_fingerprint", "KEDGE_OPEN_ACCEPT_FINGERPRINT",
            "set KEDGE_START=accept in the environment of the one start"},
    Removed{"device.direct", "KEDGE_DEVICE_DIRECT", "set device.path (KEDGE_DEVICE_PATH) to auto or buffers"},
    Removed{"device.gds", "KEDGE_DEVICE_GDS", "set device.path (KEDGE_DEVICE_PATH) to auto or gds"},
    Removed{"topology.ranks_per_node", "KEDGE_TOPOLOGY_RANKS_PER_NODE",
            "set KEDGE_TEST_RANKS_PER_NODE in the environment of tests that simulate nodes"},
};

std::optional<std::string> describe(std::string_view wanted, std::string_view Removed::*of) {
  const auto* const one = std::ranges::find(kRemoved, wanted, of);
  if (one == kRemoved.end()) return std::nullopt;
  return compose("there is no option {} any more; {}", wanted, one->advice);
}

}  // namespace

std::optional<std::string> describe_removed_option(std::string_view name) { return describe(name, &Removed::name); }

std::optional<std::string> describe_removed_variable(std::string_view variable) {
  return describe(variable, &Removed::variable);
}

}  // namespace kedge
