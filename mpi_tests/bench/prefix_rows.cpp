#include "prefix_rows.hpp"

#include "timing.hpp"

namespace kedge_bench {

void PrefixRows::add_to(Table& table, std::uint64_t bytes) {
  table.add({"disk_write", "D: plain write of fresh files beside the prefix, fsync", "", bytes});
  table.add({"disk_read", "plain read of them, out of the page cache", "disk_write", bytes});
  table.add({"flush", "flush to the prefix, after the local write", "disk_write", bytes});
  table.add({"commit_flush", "local write, protect and flush, one after the other", "disk_write", bytes});
  table.add({"refill", "plain copy of them to fresh files of the stores, out of the page cache", "disk_read", bytes});
  table.add({"fetch", "open with all stores lost: fetched, out of the page cache", "refill", bytes});
  table.add({"disk_read_cold", "plain read of them, from the disk", "disk_write", bytes});
  table.add({"fetch_cold", "open with all stores lost: fetched, from the disk", "disk_read_cold", bytes});
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

  workplace_.warm_prefix();
  fetch(recorder, "fetch");
  workplace_.evict_prefix();
  fetch(recorder, "fetch_cold");
  run_.stop();
  workplace_.remove_tag_directories();
  baselines_.remove();
}

// The stores get fresh pages: those of the lost stores went back, and memory is there for new ones, as for the copies.
void PrefixRows::fetch(Recorder& recorder, const std::string& row) {
  run_.stop();
  workplace_.lose_all_nodes();
  store_baselines_.bring_memory();
  run_.start();
  recorder.time(row, [&] { (void)run_.engine().open(); });
  (void)run_.load_and_compare(kedge::RecoverySource::fetched);
}

void PrefixRows::plain_files(Recorder& recorder) {
  recorder.record("disk_write", baselines_.write_synced());
  recorder.record("disk_read", baselines_.read());
  store_baselines_.bring_memory();
  recorder.record("refill", baselines_.copy_to(workplace_.plain()));
  baselines_.evict();
  recorder.record("disk_read_cold", baselines_.read());
}

void PrefixRows::flush(Recorder& recorder) {
  run_.new_data();
  run_.checkpoint();
  recorder.time("flush", [&] { run_.engine().wait(run_.tag(), kedge::Level::persistent); });
}

}  // namespace kedge_bench
