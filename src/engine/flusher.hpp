// The engine's part in persistence: the stage that does it, and what follows from it.
#pragma once

#include <optional>

#include "commits/ledger.hpp"
#include "engine/context.hpp"
#include "pipeline/flush_stage.hpp"

namespace kedge::engine {

class Flusher {
 public:
  explicit Flusher(Context& context) : context_(context) {}

  /// COLLECTIVE. Moves a commit whose containers lie with their owners to the prefix. The failure, the same on every
  /// rank; the commit is then as it was. With busy, a later start of the run has begun: this engine is dead. Throws
  /// Error{timeout} only.
  [[nodiscard]] std::optional<Failure> flush(const Commit& commit);

 private:
  void read_context();
  void write_context();

  Context& context_;
  commits::Ledger ledger_;  ///< what of the context the stage knows
  std::optional<pipeline::FlushStage> stage_;
};

}  // namespace kedge::engine
