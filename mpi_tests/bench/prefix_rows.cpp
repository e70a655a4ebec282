#include "prefix_rows.hpp"

#include "timing.hpp"

namespace kedge_bench {

void PrefixRows::add_to(Table& table) {
  table.add({"disk_write", "D: plain write of fresh files beside the prefix, fsync", "", {}, {}});
  table.add({"disk_read", "plain read of them, out of the page cache", "disk_write", {}, {}});
  table.add({"flush", "flush to the prefix, after the local write", "disk_write", 1.3, {}});
  table.add({"commit_flush", "local write, protect and flush, one after the other", "disk_write", {}, {}});
  table.add({"fetch", "open with all stores lost (fetched, page cache warm)", "disk_read", {}, {}});
}

// Takes turns in who is first: on a virtual machine it matters whose pages the host has already.
void PrefixRows::round(Table& table) {
  const bool plain_first = rounds_++ % 2 == 0;
  if (plain_first) plain_files(table);
  flush(table);
  if (!plain_first) plain_files(table);

  run_.new_data();
  table.record("commit_flush", timed([&] {
                 run_.checkpoint();
                 if (run_.protects()) run_.engine().wait(run_.tag(), kedge::Level::protected_);
                 run_.engine().wait(run_.tag(), kedge::Level::persistent);
               }));

  run_.stop();
  workplace_.lose_all_nodes();
  run_.start();
  table.record("fetch", timed([&] { (void)run_.engine().open(); }));
  (void)run_.load_and_compare(kedge::RecoverySource::fetched);
  run_.stop();
  workplace_.remove_tag_folders();
  baselines_.remove();
}

void PrefixRows::plain_files(Table& table) {
  table.record("disk_write", baselines_.write_synced());
  table.record("disk_read", baselines_.read());
}

void PrefixRows::flush(Table& table) {
  run_.new_data();
  run_.checkpoint();
  table.record("flush", timed([&] { run_.engine().wait(run_.tag(), kedge::Level::persistent); }));
}

}  // namespace kedge_bench
