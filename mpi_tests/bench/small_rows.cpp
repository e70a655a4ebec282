#include "small_rows.hpp"

#include <algorithm>
#include <string>

#include "timing.hpp"

namespace kedge_bench {
namespace {

constexpr std::uint64_t kRegionsOfAllRanks = 5000;
constexpr std::uint64_t kSmallBytes = std::uint64_t{64} << 10U;
constexpr std::uint64_t kTinyBytes = 64;
constexpr double kMicrosecondsPerSecond = 1e6;

std::uint64_t regions_of_one(const Arguments& arguments, int ranks) {
  const std::uint64_t wanted = kRegionsOfAllRanks / static_cast<std::uint64_t>(ranks);
  return std::max<std::uint64_t>(std::min(wanted, arguments.size_bytes / kSmallBytes), 1);
}

/// So that the next checkpoint recycles files, as in a job that has run for a while.
void start_and_warm_up(EngineRun& run) {
  run.start();
  for (int i = 0; i < 2; ++i) {
    run.new_data();
    run.checkpoint();
  }
  run.new_data();
}

}  // namespace

SmallRows::SmallRows(const Arguments& arguments, kedge::Scheme scheme, const Workplace& workplace, Buffers& buffers,
                     Baselines& baselines, int rank, int ranks)
    : count_(regions_of_one(arguments, ranks)),
      ranks_(static_cast<std::uint64_t>(ranks)),
      baselines_(baselines),
      small_(arguments, scheme, {"small", count_, kSmallBytes}, workplace, buffers, rank, ranks),
      tiny_(arguments, scheme, {"tiny", count_, kTinyBytes}, workplace, buffers, rank, ranks) {}

void SmallRows::add_to(Table& table) const {
  const std::string all = std::to_string(count_ * ranks_);
  const std::uint64_t bytes = count_ * ranks_ * kSmallBytes;
  table.add({"pieces", all + " pieces of 64 KiB, a plain pwrite each, fresh files", "write", bytes});
  table.add({"small", all + " regions of 64 KiB (create, save of each, commit)", "pieces", bytes});
  table.add({"save_small", "  one save of them, copy and checksum included", "", 0, Unit::microseconds});
  table.add({"save_tiny", "one save of 64 bytes, of as many", "", 0, Unit::microseconds});
}

// Plain writes and Kedge take turns in who is first.
void SmallRows::round(Recorder& recorder) {
  const auto plain = [&] {
    recorder.record("pieces", faster_of_two([&] { return baselines_.write_pieces(kSmallBytes, count_); }));
  };
  const bool plain_first = rounds_++ % 2 == 0;
  if (plain_first) plain();
  save(recorder);
  if (!plain_first) plain();
}

void SmallRows::save(Recorder& recorder) {
  const auto mean_us = [&](double all_s) { return most(all_s) / static_cast<double>(count_) * kMicrosecondsPerSecond; };
  double saves_s = 0;
  start_and_warm_up(small_);
  recorder.time("small", [&] { saves_s = small_.checkpoint().s; });
  recorder.record("save_small", mean_us(saves_s));
  reopen_and_compare(small_);

  start_and_warm_up(tiny_);
  recorder.record("save_tiny", mean_us(tiny_.checkpoint().s));
  reopen_and_compare(tiny_);
}

void SmallRows::reopen_and_compare(EngineRun& run) {
  run.stop();
  run.start();
  (void)run.engine().open();
  (void)run.load_and_compare(kedge::RecoverySource::in_place);
  run.stop();
}

}  // namespace kedge_bench
