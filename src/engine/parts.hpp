// References that the write side and the read side of an engine work with.
#pragma once

#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "device/copies.hpp"
#include "device/staging.hpp"
#include "engine/commit_markers.hpp"
#include "engine/lifecycle.hpp"
#include "pipeline/metrics.hpp"
#include "pipeline/pipeline.hpp"
#include "recovery/recovery.hpp"
#include "start/start.hpp"

namespace kedge::engine {

/// References to what the engine owns. State that changes is behind the interface of its owner: what is known of
/// commits is the ledger's, which call may come next the lifecycle's, what lies in the store the store's.
struct Parts {
  const start::Setup& setup;
  const start::Started& started;
  const comm::Group& group;
  Lifecycle& lifecycle;
  commits::Ledger& ledger;
  CommitMarkers& notes;
  pipeline::Pause& pause;
  pipeline::Metrics& metrics;
  pipeline::Pipeline& pipeline;
  recovery::Recovery& recovery;
  device::Staging& staging;
  device::CopyPool& copies;

  [[nodiscard]] store::NodeStore& store() const noexcept { return *started.node.store; }
  [[nodiscard]] Clock& clock() const noexcept { return *setup.environment.clock; }
};

}  // namespace kedge::engine
