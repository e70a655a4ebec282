#include "growth_rows.hpp"

#include "surroundings.hpp"
#include "timing.hpp"

namespace kedge_bench {
namespace {

constexpr int kBefore = 20;
constexpr int kMore = 200;
constexpr double kMebibyte = 1024.0 * 1024.0;

}  // namespace

void GrowthRows::add_to(Table& table) {
  table.add({"held", "memory without the data, mapped files too, after 20 checkpoints", "", 0, Unit::mebibytes});
  table.add({"held_later", "the same after 200 more", "held", 0, Unit::mebibytes});
}

void GrowthRows::measure() {
  run_.start();
  checkpoints(kBefore);
  held_mib_ = held_mebibytes();
  checkpoints(kMore);
  held_later_mib_ = held_mebibytes();
  (void)run_.engine().open();
  (void)run_.load_and_compare(kedge::RecoverySource::in_place);
  run_.stop();
  workplace_.remove_tag_directories();
}

void GrowthRows::record(Recorder& recorder) const {
  recorder.record("held", held_mib_);
  recorder.record("held_later", held_later_mib_);
}

void GrowthRows::checkpoints(int count) {
  for (int i = 0; i < count; ++i) {
    run_.new_data();
    run_.checkpoint();
  }
  run_.engine().wait(run_.tag(), kedge::Level::persistent);
}

/// COLLECTIVE. Of the rank that holds most.
double GrowthRows::held_mebibytes() const {
  const auto data_bytes = static_cast<double>((buffers_.data.size() + buffers_.back.size()) * sizeof(std::uint64_t));
  return most(static_cast<double>(resident_bytes()) - data_bytes) / kMebibyte;
}

}  // namespace kedge_bench
