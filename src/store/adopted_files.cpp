#include "store/adopted_files.hpp"

#include <algorithm>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::store {

void AdoptedFiles::assign_share(std::span<const int> ranks_on_node, std::size_t place) {
  ranks_on_node_.clear();
  for (const int rank : ranks_on_node) ranks_on_node_.push_back(static_cast<std::uint32_t>(rank));
  place_ = place;
}

bool AdoptedFiles::is_in_share(LogicalRank owner) const {
  if (std::binary_search(ranks_on_node_.begin(), ranks_on_node_.end(), owner.value)) return false;
  return !ranks_on_node_.empty() && owner.value % ranks_on_node_.size() == place_;
}

void AdoptedFiles::find(std::span<const FileName> names) {
  const auto listed = [&](const FileName& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  std::erase_if(slots_, [&](const auto& slot) { return slot->pins == 0 && !listed(slot->name); });
  for (const FileName& name : names) {
    if (!is_in_share(name.logical_rank)) continue;
    const bool known = std::any_of(slots_.begin(), slots_.end(), [&](const auto& slot) { return slot->name == name; });
    if (known) continue;
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->name = name;
  }
}

void AdoptedFiles::scan(const Id128& run_id, Verify verify, std::vector<ScannedFile>& found) {
  for (const auto& slot : slots_) {
    if (slot->state != Slot::State::writing) found.push_back(slot->scan(directory_, run_id, verify));
  }
}

StoreFile& AdoptedFiles::begin(FileKind kind, LogicalRank whose, std::uint64_t expected_bytes) {
  if (!is_in_share(whose)) {
    throw Error(ErrorCode::bad_state, compose("this process must not make a file of rank {}", whose.value));
  }
  FileName name{kind, whose, 0};
  for (const auto& slot : slots_) {
    if (slot->name.kind == kind && slot->name.logical_rank == whose) {
      name.number = std::max(name.number, slot->name.number + 1);
    }
  }
  auto slot = std::make_unique<Slot>();
  slot->name = name;
  slot->file = directory_.create(name);
  slots_.push_back(std::move(slot));
  begun_.insert(name);
  Slot& begun = *slots_.back();
  const auto failure = attempt([&] {
    directory_.make_names_durable();
    begun.file->reserve(expected_bytes);
  });
  if (failure) {
    (void)attempt([&] { discard(begun); });
    throw Error(*failure);
  }
  begun.set_state(Slot::State::writing);
  return *begun.file;
}

void AdoptedFiles::discard(Slot& slot) {
  slot.set_state(Slot::State::free);
  remove_if([&](const Slot& other) { return &other == &slot; });
}

void AdoptedFiles::verify(const Id128& run_id, const Id128& commit_id, std::span<const FileKey> but,
                          std::vector<ScannedFile>& found) {
  for (const auto& slot : slots_) {
    const bool is_left_out = std::find(but.begin(), but.end(), slot->key) != but.end();
    if (slot->has_readable_of(commit_id) && !is_left_out) found.push_back(slot->verify(directory_, run_id));
  }
}

void AdoptedFiles::offered(const Id128& commit_id, std::set<PinnableFile>& files) const {
  for (const auto& slot : slots_) {
    if (slot->has_readable_of(commit_id)) files.insert({slot->name.kind, slot->name.logical_rank, slot->key});
  }
}

template <class Condition>
void AdoptedFiles::remove_if(Condition&& condition) {
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    if ((*slot)->state == Slot::State::foreign || !condition(**slot)) {
      ++slot;
      continue;
    }
    (*slot)->file.reset();
    directory_.remove((*slot)->name);  // if it throws, the slot is still there to be tried again
    begun_.erase((*slot)->name);
    slot = slots_.erase(slot);
  }
}

void AdoptedFiles::remove_all_but(const IsKept& is_kept) {
  // Removes free files, too: their owner is not here to use them again.
  remove_if([&](const Slot& slot) {
    return slot.pins == 0 && slot.state != Slot::State::writing && !(slot.has_content() && is_kept(slot.key));
  });
}

std::size_t AdoptedFiles::drop(const Id128& commit_id) {
  const std::size_t before = slots_.size();
  remove_if([&](const Slot& slot) { return slot.pins == 0 && slot.has_content() && slot.key.commit_id == commit_id; });
  return before - slots_.size();
}

void AdoptedFiles::remove_all() {
  remove_if([&](const Slot& slot) { return !directory_.is_foreign(slot.name); });
}

Slot* AdoptedFiles::slot_of(const StoreFile& file) noexcept {
  const auto found =
      std::find_if(slots_.begin(), slots_.end(), [&](const auto& slot) { return slot->file.get() == &file; });
  return found == slots_.end() ? nullptr : found->get();
}

Slot* AdoptedFiles::find_slot(FileKind kind, LogicalRank whose, const FileKey& key) noexcept {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const auto& slot) {
    return slot->name.kind == kind && slot->name.logical_rank == whose && slot->has_readable(key);
  });
  return found == slots_.end() ? nullptr : found->get();
}

void AdoptedFiles::ignore_until_scan(const std::string& path) {
  for (const auto& slot : slots_) {
    if (directory_.path_of(slot->name) == path) slot->intact = false;
  }
}

std::uint64_t AdoptedFiles::begun_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& slot : slots_) {
    if (begun_.contains(slot->name)) bytes += slot->size_bytes(directory_);
  }
  return bytes;
}

std::uint64_t AdoptedFiles::used_bytes() const {
  std::uint64_t used = 0;
  for (const auto& slot : slots_) used += slot->size_bytes(directory_);
  return used;
}

}  // namespace kedge::store
