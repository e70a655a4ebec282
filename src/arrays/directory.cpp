#include "arrays/directory.hpp"

#include <algorithm>
#include <utility>

#include "arrays/box_tree.hpp"
#include "arrays/tiles.hpp"
#include "base/text.hpp"
#include "format/region_spec.hpp"

namespace kedge::arrays {
namespace {

Failure failure_of(ErrorCode code, std::string message) { return {code, std::move(message), -1, {}, 0}; }

std::string describe_array(const std::string& name, const ArrayType& type) {
  return compose("global array '{}' ({})", format::printable_name(name), to_string(type.shape));
}

/// The first of the wanted elements that no rank saved.
Failure saved_not_all(const std::string& name, const ArrayType& type, const Box& wanted, std::span<const Box> saved) {
  const auto hole = first_element_in_none(wanted, saved);
  if (!hole) {
    return failure_of(ErrorCode::corrupt, compose("{}: blocks of two ranks have elements in common; open an older "
                                                  "checkpoint",
                                                  describe_array(name, type)));
  }
  std::string element;
  for (std::size_t d = 0; d < wanted.dimensions; ++d) element += compose("{}{}", d == 0 ? "" : ", ", (*hole)[d]);
  return failure_of(ErrorCode::mismatch, compose("{}: no rank saved element ({}), which is asked for; ask for saved "
                                                 "elements only",
                                                 describe_array(name, type), element));
}

Failure saved_by_several(const std::string& name, std::uint32_t one, std::uint32_t another) {
  return failure_of(ErrorCode::mismatch,
                    compose("region '{}' was saved by ranks {} and {}, each its own; name the rank whose is asked for",
                            format::printable_name(name), one, another));
}

Failure not_saved_by(const std::string& name, std::uint32_t rank) {
  return failure_of(ErrorCode::not_found,
                    compose("rank {} saved no region '{}' of its own; ask for one of those that it "
                            "saved",
                            rank, format::printable_name(name)));
}

/// Which of the rows of a replicated region serves a process: its own, if that is in its node's stores, else one in
/// another process's; and on the prefix the same one for all, so that each block is read once.
class ReplicaChoice {
 public:
  /// Of each row: its steward, and whether it is in a store. The first one serves all if none is.
  void add(std::size_t row, int steward, bool is_in_store) {
    if (!is_in_store) return;
    in_stores_.push_back(row);
    own_.emplace(steward, row);
  }
  [[nodiscard]] std::size_t row_for(int process) const {
    if (in_stores_.empty()) return 0;
    const auto own = own_.find(process);
    return own != own_.end() ? own->second : in_stores_[static_cast<std::size_t>(process) % in_stores_.size()];
  }

 private:
  std::vector<std::size_t> in_stores_;
  std::map<int, std::size_t> own_;
};

/// Whether the home would have found it, had it been in its tile. Regions of ranks' own may differ from rank to rank.
bool is_saved_as(const UnknownName& asked, const Offer& offer) {
  const bool is_shard = std::holds_alternative<Shard>(offer.placement);
  if (asked.look_up == LookUp::shard) return is_shard && type_of(offer) == asked.type;
  if (asked.look_up == LookUp::replicated) return std::holds_alternative<Replicated>(offer.placement);
  return std::holds_alternative<std::monostate>(offer.placement);
}

}  // namespace

Failure saved_otherwise(const UnknownName& asked, const std::string& saved) {
  return failure_of(ErrorCode::mismatch,
                    compose("region '{}' was saved as {}, and is asked for as {}; ask for it as it was saved",
                            format::printable_name(asked.name), saved, describe(asked.look_up, asked.type)));
}

Failure saved_by_no_rank(const std::string& name) {
  return failure_of(ErrorCode::not_found,
                    compose("no rank saved a region '{}'; ask for one that was saved", format::printable_name(name)));
}

std::optional<std::string> saved_differently(const UnknownName& asked, std::span<const Offer> offers) {
  for (const Offer& offer : offers) {
    if (offer.name != asked.name || is_saved_as(asked, offer)) continue;
    return describe(offer);
  }
  return std::nullopt;
}

bool saved_the_same(const UnknownName& asked, std::span<const Offer> offers) {
  return std::ranges::any_of(offers,
                             [&](const Offer& offer) { return offer.name == asked.name && is_saved_as(asked, offer); });
}

bool Directory::TypeOrder::operator()(const ArrayType& a, const ArrayType& b) const {
  if (a.dtype != b.dtype) return a.dtype < b.dtype;
  if (a.members != b.members) return a.members < b.members;
  return std::ranges::lexicographical_compare(a.shape.extents(), b.shape.extents());
}

std::uint32_t Directory::Entry::position_of(const ArrayType& type) {
  const auto [found, is_new] = position_of_type.try_emplace(type, static_cast<std::uint32_t>(types.size()));
  if (is_new) types.push_back(type);
  return found->second;
}

void Directory::add(const HomedKey& key, const ArrayType& type, const Row& row) {
  Entry& entry = entries_[key];
  entry.rows.push_back({entry.position_of(type), row});
  ++rows_;
}

void Directory::ask(const HomedKey& key, const ArrayType& type, const Request& request) {
  Entry& entry = entries_[key];
  entry.requests.push_back({entry.position_of(type), request});
}

Directory::Matched Directory::match() const {
  Matched matched;
  for (const auto& [key, entry] : entries_) {
    if (entry.requests.empty()) continue;
    auto refusal = key.look_up == LookUp::shard ? match_shards(key, entry, matched.matches)
                                                : match_regions(key, entry, matched.matches);
    if (refusal) return {{}, std::move(refusal)};
  }
  return matched;
}

Directory::Refused Directory::check_type(const HomedKey& key, const Entry& entry, const Typed<Row>& row,
                                         const Typed<Request>& request) {
  if (row.type == request.type) return std::nullopt;
  return Refusal{saved_otherwise({key.name, key.look_up, entry.types[request.type]},
                                 describe(key.look_up, entry.types[row.type]))};
}

Directory::Refused Directory::match_shards(const HomedKey& key, const Entry& entry, std::vector<Match>& matches) const {
  std::vector<Box> boxes;
  boxes.reserve(entry.rows.size());
  for (const auto& row : entry.rows) {
    if (auto refused = check_type(key, entry, row, entry.requests.front())) return refused;
    boxes.push_back(row.item.box);
  }
  const BoxTree tree(boxes);
  for (const auto& asked : entry.requests) {
    const Request& request = asked.item;
    if (!entry.rows.empty()) {
      if (auto refused = check_type(key, entry, entry.rows.front(), asked)) return refused;
    }
    if (volume(request.box) == 0) continue;
    const ArrayType& type = entry.types[asked.type];
    const Box here = intersection(request.box, Tiles(type.shape, logical_ranks_, processes_).tile(key.tile));
    std::uint64_t found = 0;
    tree.for_each_overlap(here, [&](std::uint32_t i) {
      found += volume(intersection(here, boxes[i]));
      const Box whole = intersection(request.box, boxes[i]);
      if (intersection(here, boxes[i]).begin != whole.begin) return;  // of an earlier tile
      const Row& row = entry.rows[i].item;
      matches.push_back({row.steward, row.offer, request.process, request.want, whole});
    });
    if (found == volume(here)) continue;
    Refusal refusal{saved_not_all(key.name, type, here, boxes)};
    if (entry.rows.empty()) refusal.unknown = UnknownName{key.name, key.look_up, type};
    return refusal;
  }
  return std::nullopt;
}

/// Whole regions, found by their name and, if it is one rank's own, by that rank.
Directory::Refused Directory::match_regions(const HomedKey& key, const Entry& entry,
                                            std::vector<Match>& matches) const {
  std::vector<Typed<Row>> rows = entry.rows;
  const auto rank_of = [](const Typed<Row>& row) { return row.item.logical_rank; };
  std::ranges::stable_sort(rows, {}, rank_of);
  ReplicaChoice replicas;
  for (std::size_t i = 0; i < rows.size(); ++i) replicas.add(i, rows[i].item.steward, rows[i].item.is_in_store);
  if (key.look_up == LookUp::only_one && rows.size() > 1) {
    return Refusal{saved_by_several(key.name, rank_of(rows[0]), rank_of(rows[1]))};
  }
  for (const auto& asked : entry.requests) {
    const Request& request = asked.item;
    auto row = rows.end();
    if (key.look_up == LookUp::of_rank) {
      row = std::ranges::lower_bound(rows, request.logical_rank, {}, rank_of);
      if (row != rows.end() && rank_of(*row) != request.logical_rank) row = rows.end();
    } else if (!rows.empty()) {
      row = rows.begin() + static_cast<std::ptrdiff_t>(replicas.row_for(request.process));
    }
    if (row == rows.end()) {
      const bool of_rank = key.look_up == LookUp::of_rank;
      return Refusal{of_rank ? not_saved_by(key.name, request.logical_rank) : saved_by_no_rank(key.name),
                     UnknownName{key.name, key.look_up, entry.types[asked.type]}};
    }
    if (auto refused = check_type(key, entry, *row, asked)) return refused;
    if (volume(request.box) == 0) continue;
    matches.push_back({row->item.steward, row->item.offer, request.process, request.want, request.box});
  }
  return std::nullopt;
}

}  // namespace kedge::arrays
