#include "read_rows.hpp"

#include <algorithm>

#include "timing.hpp"

namespace kedge_bench {
namespace {

constexpr std::uint64_t kCountedBytes = std::uint64_t{64} << 20U;  // more would give the same numbers

}  // namespace

ReadRows::ReadRows(const Arguments& arguments, const Workplace& workplace, Buffers& buffers, int rank, int ranks)
    : bytes_(std::min(arguments.size_bytes, kCountedBytes)),
      ranks_(ranks),
      files_(std::make_shared<CountingFileSystem>(kedge::fs::posix_file_system())),
      run_(arguments, kedge::Scheme::single, {"reads", 1, bytes_}, workplace, buffers, rank, ranks) {}

void ReadRows::add_to(Table& table) {
  table.add({"restore_reads", "bytes that restore reads for each that it restores", "", 0, Unit::bytes_per_byte});
  table.add(
      {"open_load_reads", "  the same of open and load, which reads all of it before", "", 0, Unit::bytes_per_byte});
}

void ReadRows::round(Recorder& recorder) {
  run_.start();
  run_.new_data();
  run_.checkpoint();
  recorder.record("restore_reads", reads_of([&] { (void)run_.restore_and_compare(); }));
  recorder.record("open_load_reads", reads_of([&] {
                    (void)run_.engine().open();
                    (void)run_.load_and_compare(kedge::RecoverySource::in_place);
                  }));
  run_.stop();
}

/// COLLECTIVE.
double ReadRows::reads_of(const std::function<void()>& restart) {
  run_.stop();
  run_.start_over(files_);
  (void)files_->take_bytes_read();
  restart();
  return sum(static_cast<double>(files_->take_bytes_read())) / static_cast<double>(ranks_) /
         static_cast<double>(bytes_);
}

}  // namespace kedge_bench
