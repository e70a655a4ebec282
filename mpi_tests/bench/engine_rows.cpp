#include "engine_rows.hpp"

#include <string>

#include "bare_exchange.hpp"
#include "timing.hpp"

namespace kedge_bench {

void EngineRows::add_to(Table& table, std::uint64_t bytes) const {
  table.add({"blocked", "blocked copy with checksum (create, save, commit)", "write", bytes});
  table.add({"blocked_copy", "  the same against a plain memcpy", "copy", bytes});
  table.add({"save_cpu", "  processor time of its saves, on all ranks", "copy_cpu", bytes});
  if (run_.protects()) {
    table.add({"exchange", "plain MPI exchange of what protect sends", "write", run_.tolerance() * bytes});
    table.add({"protect", "protect, after the local write", "write", bytes});
    table.add({"protect_exchange", "  the same against that exchange", "exchange", bytes});
    table.add({"checkpoint", "local write, checksum and protect, one after the other", "write", bytes});
  }
  table.add({"open", "open from an intact store: every byte verified", "read", bytes});
  table.add({"open_load", "open and load, parity verified behind them", "read", bytes});
  table.add({"restore", "restore of a State: each byte checked while it is copied", "copy", bytes});
  if (!run_.protects()) return;
  const std::string lost =
      run_.tolerance() == 1 ? "one node's store" : std::to_string(run_.tolerance()) + " nodes' stores";
  table.add({"rebuild", "open with " + lost + " lost: rebuilt, parity too", "write", bytes});
  table.add({"rebuild_alone", "  of that, beyond an intact open of the same round", "write", bytes});
}

void EngineRows::round(Recorder& recorder) {
  run_.start();
  baselines_.bring_memory();  // for those that lost a store in the round before
  // Twice, so that all files of the store are there, mapped, and used before: what follows recycles them.
  for (int i = 0; i < 2; ++i) {
    run_.new_data();
    run_.checkpoint();
    if (run_.protects()) run_.engine().wait(run_.tag(), kedge::Level::protected_);
  }
  write(recorder);
  const double intact_s = reopen(recorder);
  if (run_.protects()) recorder.record("rebuild_alone", lose_and_reopen(recorder) - intact_s);
  ++rounds_;
}

void EngineRows::write(Recorder& recorder) {
  run_.new_data();
  double saves_cpu_s = 0;
  const double blocked_s = recorder.time("blocked", [&] { saves_cpu_s = run_.checkpoint().cpu_s; });
  recorder.record("blocked_copy", blocked_s);
  recorder.record("save_cpu", sum(saves_cpu_s));
  if (!run_.protects()) return;
  protect(recorder);
  run_.new_data();
  recorder.time("checkpoint", [&] {
    run_.checkpoint();
    run_.engine().wait(run_.tag(), kedge::Level::protected_);
  });
}

void EngineRows::protect(Recorder& recorder) {
  const double protect_s = recorder.time("protect", [&] { run_.engine().wait(run_.tag(), kedge::Level::protected_); });
  recorder.record("protect_exchange", protect_s);
  const int peers = static_cast<int>(run_.members()) - 1;
  recorder.record("exchange", faster_of_two([&] { return bare_exchange(buffers_, run_.tolerance(), peers); }));
}

double EngineRows::reopen(Recorder& recorder) {
  run_.stop();
  run_.start();
  const double open_s = recorder.time("open", [&] { (void)run_.engine().open(); });
  (void)run_.load_and_compare(kedge::RecoverySource::in_place);
  run_.stop();
  run_.start(kedge::PipelineMode::background);
  const double begun_s = recorder.seconds_of("open", [&] { (void)run_.engine().open(); });
  recorder.record("open_load", begun_s + run_.load_and_compare(kedge::RecoverySource::in_place));
  run_.stop();
  run_.start(kedge::PipelineMode::background);
  recorder.record("restore", run_.restore_and_compare());
  return open_s;
}

double EngineRows::lose_and_reopen(Recorder& recorder) {
  run_.stop();
  workplace_.lose_nodes(rounds_, run_.tolerance());
  run_.start();
  baselines_.bring_memory();  // as for W: lost ranks get fresh pages
  const double open_s = recorder.time("rebuild", [&] { (void)run_.engine().open(); });
  (void)run_.load_and_compare(kedge::RecoverySource::rebuilt);
  agree(run_.engine().level(run_.tag()) == kedge::Level::protected_ ? ""
                                                                    : "the parity of the lost ranks was not rebuilt");
  return open_s;
}

}  // namespace kedge_bench
