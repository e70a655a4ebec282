#include "drain/flush_newest.hpp"

#include <utility>

#include "base/options_values.hpp"
#include "base/text.hpp"
#include "engine/engine_environment.hpp"
#include "kedge/engine.hpp"

namespace kedge::drain {

Options options_to_flush(Options options) {
  options.start = permits_adoption(options.start) ? StartMode::adopt : StartMode::continue_;
  options.open.verify = Verify::all;  // the opened commit is verified in full before it is closed
  options.fingerprint.clear();
  options.fingerprint_files.clear();
  options.pipeline.mode = PipelineMode::inline_;
  // Signals should end this start as they end other programs.
  options.exit.signals.clear();
  options.deadline = "none";
  options.persistent.every = 0;          // finalize flushes outputs, but only the checkpoint that was asked for is
  options.store.on_exit = OnExit::keep;  // the stores may have more than is recoverable now
  return options;
}

std::string outputs_of(std::uint64_t count) {
  if (count == 0) return {};
  return compose(" {} output{}", count, count == 1 ? "" : "s");
}

Flushed flush_outputs(std::unique_ptr<Communicator> communicator, const Options& options,
                      const start::Environment& environment, const std::vector<Tag>& tags) {
  start::Environment as_drain = environment;
  as_drain.is_drain = true;
  Options of_outputs = options;
  of_outputs.redundancy.every = 0;  // what is on the prefix needs no protection
  Engine engine = engine::EngineEnvironment::make_engine(std::move(communicator), of_outputs, std::move(as_drain));
  for (const Tag& tag : tags) {
    try {
      if (engine.open(tag)) engine.close();
    } catch (const Error& error) {
      // The log names lost outputs and the reason.
      if (error.code() != ErrorCode::unrecoverable && error.code() != ErrorCode::corrupt) throw;
    }
  }
  engine.finalize();
  Flushed flushed;
  flushed.outputs = engine.counters().flushes;
  return flushed;
}

Flushed flush_newest(std::unique_ptr<Communicator> communicator, const Options& options,
                     const start::Environment& environment, std::uint64_t at_least) {
  start::Environment as_drain = environment;
  as_drain.is_drain = true;
  Engine engine = engine::EngineEnvironment::make_engine(std::move(communicator), options, std::move(as_drain));
  Flushed flushed;
  if (const std::optional<Tag> tag = engine.open()) {
    const CheckpointInfo info = engine.info();
    flushed = {info, info.total_bytes, engine.level(*tag) == Level::persistent};
    flushed.is_flushed = !flushed.was_there && info.generation >= at_least;
    if (flushed.is_flushed) engine.wait(*tag, Level::persistent);
    engine.close();
  }
  const std::uint64_t before = engine.counters().flushes;
  engine.finalize();
  flushed.outputs = engine.counters().flushes - before;
  if (!flushed.commit && flushed.outputs == 0) {
    throw Error(ErrorCode::unrecoverable, "the stores have no checkpoint that can be recovered");
  }
  return flushed;
}

}  // namespace kedge::drain
