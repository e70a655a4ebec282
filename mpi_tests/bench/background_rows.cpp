#include "background_rows.hpp"

#include "timing.hpp"

namespace kedge_bench {

void BackgroundRows::add_to(Table& table, std::uint64_t bytes) {
  table.add({"blocked_behind", "blocked copy while the checkpoint before is protected and flushed", "copy", bytes});
  table.add({"persistent_behind", "local write, protect and flush behind the application, until all is there",
             "disk_write", bytes});
}

void BackgroundRows::round(Recorder& recorder) {
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
  run_.stop();
  workplace_.remove_tag_directories();
}

}  // namespace kedge_bench
