#include "plan_rows.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <string>

#include "arrays/directory.hpp"
#include "arrays/read_plan.hpp"
#include "arrays/wanted_names.hpp"
#include "format/on_disk.hpp"
#include "kedge/mpi.hpp"
#include "memory_watch.hpp"
#include "surroundings.hpp"
#include "timing.hpp"

namespace kedge_bench {
namespace {

using kedge::Shape;
using namespace kedge::arrays;

constexpr std::uint64_t kMany = 1U << 14U;                       // extent of an array of many shards: 32 TiB
constexpr std::uint64_t kExtent = 512;                           // of an array of 1 GiB
constexpr std::uint64_t kWholeBytes = std::uint64_t{32} << 20U;  // of a rank; whoever saves less wants to be done soon

/// An array cut into so many parts in each dimension.
Boxes cut(std::uint64_t extent, const std::array<std::uint64_t, 3>& parts) {
  Boxes boxes;
  for (std::uint64_t i = 0; i < parts[0] * parts[1] * parts[2]; ++i) {
    const std::array<std::uint64_t, 3> at{i / (parts[1] * parts[2]), i / parts[2] % parts[1], i % parts[2]};
    Box box;
    box.dimensions = 3;
    for (std::size_t d = 0; d < 3; ++d) {
      box.begin[d] = extent * at[d] / parts[d];
      box.end[d] = extent * (at[d] + 1) / parts[d];
    }
    boxes.push_back(box);
  }
  return boxes;
}

std::unique_ptr<kedge::Communicator> connected() {
  auto communicator = kedge::mpi(MPI_COMM_WORLD);
  communicator->connect(kedge::Deadline::after(std::chrono::seconds(60)));
  return communicator;
}

}  // namespace

PlanRows::PlanRows(const Arguments& arguments)
    : shards_(arguments.size_bytes < kWholeBytes ? 10 : 46),
      wants_(arguments.size_bytes < kWholeBytes ? 9 : 40),
      places_(arguments.size_bytes < kWholeBytes ? 1 : 8),
      first_(1),
      communicator_(connected()),
      group_(*communicator_, kedge::comm::Group::Seconds(600)) {}

void PlanRows::add_to(Table& table) const {
  const auto cubed = [](std::uint64_t count) { return std::to_string(count * count * count); };
  table.add(
      {"plan_home", cubed(shards_) + " shards against " + cubed(wants_) + " wants in one home, processor time", "", 0});
  table.add({"plan_memory", "memory of the whole plan for each who wants", "", 0, Unit::kibibytes});
  table.add(
      {"slab_reads", "a slab of 1 % of an array in slabs reads, of each of its bytes", "", 0, Unit::bytes_per_byte});
  table.add({"cube_reads", "  a cube of 1 % of an array in cubes", "", 0, Unit::bytes_per_byte});
  table.add({"cube_of_slabs_reads", "  a cube of 1 % of an array in slabs", "", 0, Unit::bytes_per_byte});
}

void PlanRows::round(Recorder& recorder) {
  if (!counts_) {
    const Boxes saved = cut(kMany, {shards_, shards_, shards_});
    const Boxes wanted = cut(kMany, {wants_, wants_, wants_});
    const Boxes slabs = cut(kExtent, {64, 1, 1});
    counts_ = Counts{home_seconds(saved, wanted), memory_kibibytes(saved, wanted),
                     part_read(slabs, Shape{5, kExtent, kExtent}),
                     part_read(cut(kExtent, {4, 4, 4}), Shape{110, 110, 110}), part_read(slabs, Shape{110, 110, 110})};
  }
  recorder.record("plan_home", counts_->home_s);
  recorder.record("plan_memory", counts_->memory_kib);
  recorder.record("slab_reads", counts_->slab);
  recorder.record("cube_reads", counts_->cube);
  recorder.record("cube_of_slabs_reads", counts_->cube_of_slabs);
}

/// COLLECTIVE. Processor time, as others may have the core meanwhile.
double PlanRows::home_seconds(const Boxes& saved, const Boxes& wanted) const {
  double spent_s = 0;
  (void)first_.time([&] {
    const double begin_s = cpu_seconds();
    const ArrayType type{kedge::DataType::float64, {}, Shape{kMany, kMany, kMany}};
    const HomedKey key{LookUp::shard, 0, "u"};
    Directory directory(64, 1);  // one tile
    for (std::uint32_t i = 0; i < saved.size(); ++i) directory.add(key, type, {0, i, i, false, saved[i]});
    for (std::uint32_t i = 0; i < wanted.size(); ++i) directory.ask(key, type, {static_cast<int>(i), 0, 0, wanted[i]});
    std::uint64_t elements = 0;
    for (const Match& match : directory.match().matches) elements += volume(match.box);
    if (elements != kMany * kMany * kMany) throw std::runtime_error("the home did not find each element once");
    spent_s = cpu_seconds() - begin_s;
  });
  return most(spent_s);
}

/// COLLECTIVE. All that the processes of this job hold, divided by the ranks that they plan for.
double PlanRows::memory_kibibytes(const Boxes& saved, const Boxes& wanted) const {
  MemoryWatch watch(private_bytes());
  (void)planned_bytes(Shape{kMany, kMany, kMany}, saved, wanted);
  return sum(static_cast<double>(watch.peak_bytes())) / 1024.0 / static_cast<double>(wanted.size());
}

/// COLLECTIVE. At most over some places where one rank may want so much.
double PlanRows::part_read(const Boxes& saved, const Shape& extents) const {
  double most_bytes = 0;
  for (std::uint64_t place = 0; place < places_; ++place) {
    Box box;
    box.dimensions = 3;
    std::uint64_t turn = place;
    for (std::size_t d = 0; d < 3; ++d, turn /= 2) {
      box.begin[d] = (kExtent - extents[d]) * (1 + 2 * (turn % 2)) / 5;
      box.end[d] = box.begin[d] + extents[d];
    }
    most_bytes = std::max(most_bytes, planned_bytes(Shape{kExtent, kExtent, kExtent}, saved, {box}));
  }
  return most_bytes / static_cast<double>(kExtent * kExtent * kExtent * sizeof(double));
}

double PlanRows::planned_bytes(const Shape& array, const Boxes& saved, const Boxes& wanted) const {
  const auto is_mine = [&](std::size_t i) { return static_cast<int>(i) % group_.size() == group_.rank(); };
  std::vector<Offer> offers;
  std::vector<Want> wants;
  for (std::uint32_t i = 0; i < saved.size(); ++i) {
    if (is_mine(i))
      offers.push_back(
          {"u", kedge::DataType::float64, {}, shape_of(saved[i]), kedge::Shard{array, offset_of(saved[i])}, i, false});
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (is_mine(i))
      wants.push_back(
          {"u", kedge::DataType::float64, {}, shape_of(wanted[i]), kedge::Shard{array, offset_of(wanted[i])}, {}});
  }
  const WantedNames names = gather_wanted_names(group_, wants);
  const PlanInput input{wants, offers, static_cast<std::uint32_t>(saved.size()), std::uint64_t{16} << 20U};
  const ReadPlan plan = make_read_plan(group_, input, names, {0, 1});
  std::uint64_t bytes = 0;
  for (const ReadOrder& order : plan.orders) {
    for (const std::uint64_t block : order.blocks) {
      bytes += std::min(kedge::format::kBlockBytes, order.size_bytes - block * kedge::format::kBlockBytes);
    }
  }
  return sum(static_cast<double>(bytes));
}

}  // namespace kedge_bench
