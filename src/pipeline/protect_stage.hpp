// Local to protected: parity of a commit in the stores of other failure domains.
#pragma once

#include <optional>
#include <utility>

#include "commits/ledger.hpp"
#include "format/set_descriptor.hpp"
#include "pipeline/stage.hpp"
#include "redundancy/assignment.hpp"
#include "redundancy/plan_pieces.hpp"
#include "store/node_store.hpp"

namespace kedge::pipeline {

/// What the ranks have of the protections of one commit.
struct Protections {
  Id128 current;  ///< of which nothing is missing, and which is the one that it would get today; none: there is no such
  Id128 sound;    ///< else one of which nothing is missing and no set has two members in one failure domain of today
  Id128 best;     ///< else the one of which most is there
};

struct ProtectSettings {
  redundancy::SetAssignment assignment;
  redundancy::PieceSettings pieces;
  bool durable = false;
};

class ProtectStage final : public Stage {
 public:
  ProtectStage(store::NodeStore& store, commits::Ledger& ledger, ProtectSettings settings)
      : store_(store), ledger_(ledger), settings_(std::move(settings)) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "protection"; }
  [[nodiscard]] Level reaches() const noexcept override { return Level::protected_; }
  /// False if the scheme is single.
  [[nodiscard]] bool is_possible() const noexcept override { return settings_.assignment.scheme != Scheme::single; }
  [[nodiscard]] ForOutputs for_outputs() const noexcept override { return ForOutputs::as_checkpoints; }
  [[nodiscard]] bool needs_store_space() const noexcept override { return true; }
  [[nodiscard]] double sent_share() const noexcept override { return settings_.assignment.parities; }
  [[nodiscard]] std::string warning(const CommitHead& commit, const Failure& failure,
                                    std::uint64_t tries) const override;
  [[nodiscard]] std::optional<Failure> run(const comm::Group& group, const CommitFiles& files) override;

  [[nodiscard]] Scheme scheme() const noexcept { return settings_.assignment.scheme; }
  /// COLLECTIVE. What is there of a commit that was opened. One round for each protection of which anything is.
  [[nodiscard]] Protections find(const comm::Group& group, const Id128& commit_id) const;

 private:
  [[nodiscard]] bool is_current(const format::SetDescriptor& set) const;
  [[nodiscard]] bool is_sound(const format::SetDescriptor& set) const;

  store::NodeStore& store_;
  commits::Ledger& ledger_;
  ProtectSettings settings_;
};

}  // namespace kedge::pipeline
