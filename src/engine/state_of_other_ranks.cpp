// A State's variables from a checkpoint that another number of ranks saved.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "engine/collective_load.hpp"
#include "engine/state_io.hpp"
#include "engine/state_items.hpp"

namespace kedge::engine {
namespace {

using arrays::LookUp;
using arrays::SavedName;

/// What all items ask for, and which cannot be served.
struct Asked {
  std::vector<Want> wants;
  std::string need_callback;  ///< each rank's own, without PerRank
  std::string differ;         ///< Replicated now, and saved otherwise by some rank
  std::string not_saved;
};

void add_name(std::string& list, const std::string& name) { list += (list.empty() ? "'" : ", '") + name + "'"; }

/// The share of a process in `total` rows: even, in the order of the processes.
std::pair<std::uint64_t, std::uint64_t> share_of(std::uint64_t total, std::uint32_t process, std::uint32_t processes) {
  const auto begin_of = [&](std::uint64_t p) { return total / processes * p + std::min(p, total % processes); };
  return {begin_of(process), begin_of(process + 1)};
}

/// A list whose block is wherever its elements are: particles. They come in even shares, in order.
bool is_list(const State::Item& item, const State::View& view, const SavedName& saved) {
  return item.resize && item.block_is_function && saved.look_up == LookUp::shard &&
         saved.type.shape.dimensions() == view.element_dimensions + 1;
}

class Request {
 public:
  Request(const comm::Group& group, std::uint32_t saved_by, Asked& asked)
      : group_(group), saved_by_(saved_by), asked_(asked) {}

  void add(const State::Item& item, const SavedName& saved) {
    if (item.per_rank) return;
    if (saved.regions == 0) return add_name(asked_.not_saved, item.name);
    State::View view = view_of(item);
    if (is_list(item, view, saved)) return add_share(item, view, saved);
    const Block block = block_of(item);
    if (std::holds_alternative<Shard>(block.placement)) return add_shard(item, view, block);
    if (saved.look_up == LookUp::replicated) return add_region(item, view, saved, Replicated{}, {});
    const bool is_replicated = std::holds_alternative<Replicated>(block.placement);
    const bool is_equal = !saved.unlike && saved.regions == saved_by_;
    if (is_replicated && is_equal) return add_region(item, view, saved, {}, LogicalRank{0});
    if (is_replicated) return add_name(asked_.differ, item.name);
    if (saved.look_up == LookUp::of_rank && saved.regions == 1) return add_region(item, view, saved, {}, {});
    add_name(asked_.need_callback, item.name);
  }

 private:
  void add_share(const State::Item& item, State::View& view, const SavedName& saved) {
    const auto [begin, end] = share_of(saved.type.shape[0], group_.logical_rank().value, group_.world_size());
    resize(item, view, end - begin);
    std::vector<std::uint64_t> offset(saved.type.shape.dimensions());
    offset[0] = begin;
    asked_.wants.push_back({item.name, view.region, Shard{saved.type.shape, Shape(Extents(offset))}});
  }

  void add_shard(const State::Item& item, State::View& view, const Block& block) {
    const std::uint64_t count = count_of(block.shape.extents());
    if (item.resize && block.shape.dimensions() != 0 && count != count_of(view)) resize(item, view, count);
    require_fit(item, view, block);
    MutableRegion target = view.region;
    target.shape = shape_in(block, view);
    asked_.wants.push_back({item.name, target, place_in(block, view, target.shape)});
  }

  void add_region(const State::Item& item, State::View& view, const SavedName& saved, Placement placement,
                  std::optional<LogicalRank> of) {
    format::RegionSpec spec;
    spec.dtype = saved.type.dtype;
    spec.members = saved.type.members;
    spec.shape = saved.type.shape;
    make_room(item, view, spec);
    MutableRegion target = view.region;
    const Block block = block_of(item);
    if (block.shape.dimensions() != 0) target.shape = shape_in(block, view);
    asked_.wants.push_back({item.name, target, std::move(placement), of});
  }

  const comm::Group& group_;
  std::uint32_t saved_by_;  ///< how many ranks
  Asked& asked_;
};

std::optional<Failure> why_not(const Asked& asked, const CheckpointInfo& info, std::uint32_t processes) {
  std::string reasons;
  const auto add = [&](const std::string& names, std::string_view what) {
    if (!names.empty()) reasons += compose("{}{} {}", reasons.empty() ? "" : "; ", names, what);
  };
  add(asked.need_callback,
      "are each rank's own: give State::add kedge::Replicated{} if they are equal on all ranks, else kedge::PerRank, a "
      "function that gets what each rank saved");
  add(asked.differ, "are Replicated now, but the ranks saved different values: give State::add kedge::PerRank instead");
  add(asked.not_saved, "were not saved");
  if (reasons.empty()) return std::nullopt;
  return Failure{ErrorCode::mismatch,
                 compose("{} was saved by {} ranks and this job has {}; these variables cannot be loaded: {}", info.tag,
                         info.world_size, processes, reasons)};
}

/// What the functions of the items with PerRank get: the bytes of each rank whose container this process reads. These,
/// and all else, are read and checked before any function is called, on any rank: after damage another checkpoint is
/// loaded, and a function that had got bytes already would get each rank's again.
class PerRankItems {
 public:
  /// Keeps at most so many bytes in memory; what is beyond is read again when it is given.
  PerRankItems(const OpenCheckpoint& checkpoint, const State& state, std::uint64_t keep_bytes)
      : checkpoint_(checkpoint), state_(state), left_bytes_(keep_bytes) {}

  /// Local. Throws corrupt, io.
  void read() {
    checkpoint_.require_present();
    for (const State::Item& item : state_.items()) {
      if (!item.per_rank) continue;
      for (const recovery::Holding& holding : checkpoint_.holdings) {
        const format::StoredRegion* region = holding.container().find_region(item.name);
        if (region == nullptr) continue;
        Found& found = found_.emplace_back(Found{item, holding, *region, {}, false});
        found.bytes = read(found);
        if (checkpoint_.unproven && holding.is_in_store()) checkpoint_.unproven->mark_read(*region);
        found.is_kept = region->size_bytes <= left_bytes_;
        if (found.is_kept) left_bytes_ -= region->size_bytes;
        else found.bytes = {};
      }
    }
  }

  /// Local. Throws corrupt, io, and what the functions throw.
  void give() {
    for (Found& found : found_) {
      if (!found.is_kept) found.bytes = read(found);
      in_application(found.item, "restoring", [&] { found.item.per_rank(found.holding.logical_rank(), found.bytes); });
      found.bytes = {};
    }
  }

 private:
  struct Found {
    const State::Item& item;
    const recovery::Holding& holding;
    const format::StoredRegion& region;
    std::vector<std::byte> bytes;
    bool is_kept = false;
  };
  static std::vector<std::byte> read(const Found& found) {
    std::vector<std::byte> bytes(found.region.size_bytes);
    found.holding.container().read(found.region, bytes);
    return bytes;
  }

  const OpenCheckpoint& checkpoint_;
  const State& state_;
  std::uint64_t left_bytes_;
  std::vector<Found> found_;
};

}  // namespace

void load_of_other_ranks(Reader& reader, const State& state) {
  const comm::Group& group = reader.group();
  const OpenCheckpoint& checkpoint = reader.checkpoint("restore");
  PerRankItems per_rank(checkpoint, state, reader.load_buffer_bytes());
  try {
    std::vector<arrays::NameToFind> names;
    for (const State::Item& item : state.items()) names.push_back({item.name});
    const std::vector<SavedName> saved = reader.find_saved(names);
    Asked asked;
    auto failure = attempt([&] {
      Request request(group, reader.info().world_size, asked);
      for (std::size_t i = 0; i < saved.size(); ++i) request.add(state.items()[i], saved[i]);
    });
    if (!failure) failure = why_not(asked, reader.info(), group.world_size());
    if (!failure) failure = attempt([&] { per_rank.read(); });
    reader.load_all(asked.wants, failure);
    const auto has_function = [](const State::Item& item) { return static_cast<bool>(item.per_rank); };
    reader.verify_rest(std::ranges::any_of(state.items(), has_function));
  } catch (const Error& error) {
    // Ranks that make different calls do not close the checkpoint together either.
    if (comm::ends_communication(error.code()) || error.code() == ErrorCode::bad_state) throw;
    reader.remember_shared(error.failure());
    return;
  }
  if (auto failure = attempt([&] { per_rank.give(); })) (void)reader.remember(*std::move(failure));
}

}  // namespace kedge::engine
