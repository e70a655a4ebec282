// The stage from local to protected: stores a commit's parity in other failure domains.
#pragma once

#include <optional>
#include <utility>

#include "commits/ledger.hpp"
#include "format/set_descriptor.hpp"
#include "pipeline/stage.hpp"
#include "redundancy/assignment.hpp"
#include "redundancy/plan_stripes.hpp"
#include "store/node_store.hpp"

namespace kedge::pipeline {

/// Which protections of one commit exist.
struct Protections {
  Id128 current;         ///< a complete one with the sets of today; may be none
  Id128 across_domains;  ///< otherwise a complete one whose members are in different domains today
  Id128 most_complete;   ///< otherwise the most complete one
};

struct ProtectSettings {
  redundancy::RedundancySetAssignment assignment;
  redundancy::PieceSettings pieces;
  bool durable = false;
};

class ProtectStage final : public Stage {
 public:
  ProtectStage(store::NodeStore& store, commits::Ledger& ledger, ProtectSettings settings)
      : store_(store), ledger_(ledger), settings_(std::move(settings)) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "protection"; }
  [[nodiscard]] Level level() const noexcept override { return Level::protected_; }
  [[nodiscard]] bool is_possible() const noexcept override { return settings_.assignment.scheme != Scheme::single; }
  [[nodiscard]] ForOutputs for_outputs() const noexcept override { return ForOutputs::as_checkpoints; }
  [[nodiscard]] bool needs_store_space() const noexcept override { return true; }
  [[nodiscard]] double sent_bytes_per_byte() const noexcept override { return settings_.assignment.parity_count; }
  [[nodiscard]] std::string failure_warning(const CommitHead& commit, const Failure& failure,
                                            std::uint64_t tries) const override;
  [[nodiscard]] std::optional<Failure> run(const comm::Group& group, const CommitFiles& files) override;

  [[nodiscard]] Scheme scheme() const noexcept { return settings_.assignment.scheme; }
  /// COLLECTIVE. Finds the protections of an opened commit, in one round for each.
  [[nodiscard]] Protections find_protections(const comm::Group& group, const Id128& commit_id) const;

 private:
  [[nodiscard]] bool is_current(const format::SetDescriptor& set) const;
  [[nodiscard]] bool is_sound(const format::SetDescriptor& set) const;

  store::NodeStore& store_;
  commits::Ledger& ledger_;
  ProtectSettings settings_;
};

}  // namespace kedge::pipeline
