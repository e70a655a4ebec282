#include "background_rows.hpp"

#include "timing.hpp"

namespace kedge_bench {
namespace {

constexpr double kLoop_s = 0.2;  // of the loops of an application

}  // namespace

void BackgroundRows::add_to(Table& table, std::uint64_t bytes) {
  table.add({"blocked_behind", "blocked copy while the checkpoint before is protected and flushed", "copy", bytes});
  table.add({"persistent_behind", "local write, protect and flush in the background, until all is there", "disk_write",
             bytes});
  table.add({"compute", "a loop that needs memory, with nothing behind it", "", 0});
  table.add({"compute_behind", "  the same while a checkpoint is protected and flushed", "compute", 0});
  table.add({"alltoall", "a loop of MPI_Alltoall, with nothing behind it", "", 0});
  table.add({"alltoall_behind", "  the same while a checkpoint is protected and flushed", "alltoall", 0});
  table.add({"alltoall_capped", "  the same, at most 64 MiB/s sent and written by each node", "alltoall", 0});
  table.add({"alltoall_paused", "  the same, between pause and resume", "alltoall", 0});
}

/// COLLECTIVE. The application goes on at once; what is left of the work then is waited for.
void BackgroundRows::beside(EngineRun& run, Recorder& recorder, const std::string& key, double (Neighbours::*loop)()) {
  run.new_data();
  run.checkpoint();
  recorder.record(key, (neighbours_.*loop)());
  run.engine().wait(run.tag(), kedge::Level::persistent);
}

void BackgroundRows::neighbours(Recorder& recorder) {
  if (!calibrated_) neighbours_.calibrate(kLoop_s);
  calibrated_ = true;
  recorder.record("compute", neighbours_.compute());
  recorder.record("alltoall", neighbours_.exchange());
  beside(run_, recorder, "compute_behind", &Neighbours::compute);
  beside(run_, recorder, "alltoall_behind", &Neighbours::exchange);
  run_.new_data();
  run_.checkpoint();
  run_.engine().pause();
  recorder.record("alltoall_paused", neighbours_.exchange());
  run_.engine().resume();
  run_.engine().wait(run_.tag(), kedge::Level::persistent);
}

void BackgroundRows::capped(Recorder& recorder) {
  capped_.start();
  beside(capped_, recorder, "alltoall_capped", &Neighbours::exchange);
  capped_.stop();
  workplace_.remove_tag_directories();
}

void BackgroundRows::round(Recorder& recorder, bool with_loops) {
  run_.start();
  // So that all files of the store are there, mapped, and used before.
  for (int i = 0; i < 3; ++i) {
    run_.new_data();
    run_.checkpoint();
    run_.engine().wait(run_.tag(), kedge::Level::persistent);
  }
  run_.new_data();
  recorder.time("persistent_behind", [&] {
    run_.checkpoint();
    run_.engine().wait(run_.tag(), kedge::Level::persistent);
  });
  // The same content once more: nothing comes between the two.
  run_.new_data();
  run_.checkpoint("before");
  recorder.time("blocked_behind", [&] { run_.checkpoint(); });
  (void)run_.engine().open();
  (void)run_.load_and_compare(kedge::RecoverySource::in_place);
  if (with_loops) neighbours(recorder);
  run_.stop();
  workplace_.remove_tag_directories();
  if (with_loops) capped(recorder);
}

}  // namespace kedge_bench
