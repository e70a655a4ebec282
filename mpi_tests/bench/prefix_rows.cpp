#include "prefix_rows.hpp"

#include "timing.hpp"

namespace kedge_bench {

void PrefixRows::add_to(Table& table, std::uint64_t bytes) {
  table.add({"disk_write", "D: plain write of fresh files beside the prefix, fsync", "", bytes});
  table.add({"disk_read", "plain read of them, out of the page cache", "disk_write", bytes});
  table.add({"flush", "flush to the prefix, after the local write", "disk_write", bytes});
  table.add({"commit_flush", "local write, protect and flush, one after the other", "disk_write", bytes});
  table.add({"fetch", "open with all stores lost (fetched, page cache warm)", "disk_read", bytes});
}

// Takes turns in who is first: on a virtual machine it matters whose pages the host has already.
void PrefixRows::round(Recorder& recorder) {
  const bool plain_first = rounds_++ % 2 == 0;
  if (plain_first) plain_files(recorder);
  flush(recorder);
  if (!plain_first) plain_files(recorder);

  run_.new_data();
  recorder.time("commit_flush", [&] {
    run_.checkpoint();
    if (run_.protects()) run_.engine().wait(run_.tag(), kedge::Level::protected_);
    run_.engine().wait(run_.tag(), kedge::Level::persistent);
  });

  run_.stop();
  workplace_.lose_all_nodes();
  run_.start();
  recorder.time("fetch", [&] { (void)run_.engine().open(); });
  (void)run_.load_and_compare(kedge::RecoverySource::fetched);
  run_.stop();
  workplace_.remove_tag_directories();
  baselines_.remove();
}

void PrefixRows::plain_files(Recorder& recorder) {
  recorder.record("disk_write", baselines_.write_synced());
  recorder.record("disk_read", baselines_.read());
}

void PrefixRows::flush(Recorder& recorder) {
  run_.new_data();
  run_.checkpoint();
  recorder.time("flush", [&] { run_.engine().wait(run_.tag(), kedge::Level::persistent); });
}

}  // namespace kedge_bench
