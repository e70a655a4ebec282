#include "store/node_store.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "format/container_reader.hpp"
#include "store/container_name.hpp"

namespace kedge::store {
namespace {

constexpr std::string_view kRoutedPrefix = "routed-";
constexpr std::uint64_t kSuperblockBytes = 4096;

}  // namespace

struct NodeStore::Slot {
  enum class State : std::uint8_t {
    free,
    writing,
    sealed,
    retired,
    foreign,  ///< the name is taken by something that is not ours: neither read nor written nor removed
  };
  std::uint32_t number = 0;
  State state = State::free;
  bool pinned = false;
  bool intact = false;  ///< as far as the last scan looked; what was sealed since is
  Id128 commit_id;
  std::uint64_t generation = 0;
  std::unique_ptr<ContainerFile> file;  ///< opened when first needed, then kept open
};

NodeStore::NodeStore(std::shared_ptr<fs::FileSystem> file_system, Options::Store options, Location location,
                     LogicalRank logical_rank)
    : file_system_(std::move(file_system)),
      options_(std::move(options)),
      location_(std::move(location)),
      logical_rank_(logical_rank) {
  find_slots();
}

NodeStore::~NodeStore() = default;

std::string NodeStore::slot_path(std::uint32_t number) const {
  return fs::join(location_.folder, to_string(ContainerName{logical_rank_, number}));
}

void NodeStore::find_slots() {
  for (const std::string& name : file_system_->list(location_.folder)) {
    const auto parsed = parse_container_name(name);
    if (!parsed || parsed->logical_rank != logical_rank_) continue;
    const std::uint32_t number = parsed->number;
    const bool known =
        std::any_of(slots_.begin(), slots_.end(), [&](const auto& slot) { return slot->number == number; });
    if (known) continue;
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->number = number;
  }
}

/// Throws it.
void NodeStore::explain_refusal(const Failure& refused, std::uint64_t needed_bytes) {
  Failure failure = refused;
  // If the system cannot even say what is free, what it refused is the better reason.
  (void)attempt([&] {
    const fs::Space space = file_system_->space(location_.folder);
    failure.message +=
        compose("; the container needs up to {} more, and {} and {} inodes are free ({})", human_bytes(needed_bytes),
                human_bytes(space.free_bytes), space.free_inodes, space.limit);
  });
  throw Error(failure);
}

ContainerFile::SpaceCheck NodeStore::space_check() {
  return [this](std::uint64_t additional_bytes, const Failure* refused) {
    if (refused != nullptr) explain_refusal(*refused, additional_bytes);
    const std::uint64_t used = used_bytes();
    if (options_.quota_bytes != 0 && used + additional_bytes > options_.quota_bytes) {
      throw Error(Failure{ErrorCode::no_space,
                          compose("the container needs {} more, and store.quota_bytes leaves {}; raise it or save less",
                                  human_bytes(additional_bytes),
                                  human_bytes(options_.quota_bytes - std::min(used, options_.quota_bytes))),
                          -1, location_.folder, 0});
    }
    const fs::Space space = file_system_->space(location_.folder);
    if (additional_bytes > space.free_bytes) {
      throw Error(Failure{ErrorCode::no_space,
                          compose("the container needs {} more, and {} is free ({}); free some or set store.path to a "
                                  "larger place",
                                  human_bytes(additional_bytes), human_bytes(space.free_bytes), space.limit),
                          -1, location_.folder, 0});
    }
    if (space.free_inodes == 0) {
      throw Error(Failure{ErrorCode::no_space, "the node-local store has no inodes left; remove files there", -1,
                          location_.folder, 0});
    }
  };
}

ContainerFile& NodeStore::opened(Slot& slot) {
  if (slot.file) return *slot.file;
  auto file = file_system_->open(slot_path(slot.number), fs::Access::read_write);
  if (file->status().owner != file_system_->user()) {
    throw Error(Failure{ErrorCode::io, "a container's name is taken by a file of another user; remove it", -1,
                        file->path(), 0});
  }
  slot.file = std::make_unique<ContainerFile>(std::move(file), location_.memory_backed, space_check());
  return *slot.file;
}

NodeStore::Slot& NodeStore::slot_of(const ContainerFile& file) {
  const auto found =
      std::find_if(slots_.begin(), slots_.end(), [&](const auto& slot) { return slot->file.get() == &file; });
  if (found == slots_.end()) throw Error(ErrorCode::bad_state, "the container file is not one of this store");
  return **found;
}

Held NodeStore::inspect(Slot& slot, const Id128& run_id, Verify verify) {
  Held held;
  held.path = slot_path(slot.number);
  const auto failure = attempt([&] {
    const auto status = file_system_->status(held.path);
    if (!status) return;  // gone is no damage: who misses it says where it should be
    if (status->owner != file_system_->user() || status->kind != fs::FileStatus::Kind::file) {
      slot.state = Slot::State::foreign;
      slot.file.reset();
      throw Error(Failure{ErrorCode::io, "not a file of this user: not used", -1, held.path, 0});
    }
    held.size_bytes = status->size_bytes;
    if (status->size_bytes == 0) return;  // given up by a checkpoint that failed, or not yet begun
    if (status->size_bytes < kSuperblockBytes) {
      throw Error(ErrorCode::corrupt, compose("cut to {} bytes, too short for a container", status->size_bytes));
    }
    const auto file = file_system_->open(held.path, fs::Access::read);
    std::vector<std::byte> first(kSuperblockBytes);
    (void)file->copy_out(0, first, 0);
    if (format::is_unsealed(first)) return;
    const format::Superblock superblock = format::decode(first, held.path);
    held.superblock = superblock;
    if (superblock.run_id != run_id) throw Error(ErrorCode::corrupt, "it belongs to another run");
    if (superblock.logical_rank != logical_rank_) {
      throw Error(ErrorCode::corrupt, compose("it is the container of rank {}", superblock.logical_rank.value));
    }
    format::ContainerReader reader(*file, status->size_bytes, held.path);
    if (verify == Verify::all) {
      const auto damages = reader.verify();
      if (!damages.empty()) throw Error(ErrorCode::corrupt, damages.front().what + " is damaged");
    }
    held.intact = true;
  });
  if (failure) held.damage = held.path + ": " + failure->message;
  return held;
}

std::vector<Held> NodeStore::scan(const Id128& run_id, Verify verify) {
  find_slots();
  std::vector<Held> found;
  for (const auto& slot : slots_) {
    if (slot->state == Slot::State::writing) continue;
    if (slot->state == Slot::State::foreign) slot->state = Slot::State::free;  // it may have gone since
    Held held = inspect(*slot, run_id, verify);
    slot->intact = held.intact;
    if (held.superblock) {
      if (slot->state == Slot::State::free) slot->state = Slot::State::sealed;
      slot->commit_id = held.superblock->commit_id;
      slot->generation = held.superblock->generation;
    }
    found.push_back(std::move(held));
  }
  return found;
}

std::uint64_t NodeStore::highest_generation() {
  std::uint64_t highest = 0;
  for (const std::string& name : file_system_->list(location_.folder)) {
    if (!parse_container_name(name)) continue;
    const std::string path = fs::join(location_.folder, name);
    // What cannot be read has no number that could be met again.
    (void)attempt([&] {
      const auto file = file_system_->open(path, fs::Access::read);
      highest = std::max(highest, format::read_superblock(*file, file->status().size_bytes, path).generation);
    });
  }
  return highest;
}

NodeStore::Slot& NodeStore::free_slot() {
  Slot* oldest = nullptr;
  for (const auto& slot : slots_) {
    if (slot->pinned) continue;
    if (slot->state == Slot::State::free) return *slot;
    if (slot->state == Slot::State::retired && (oldest == nullptr || slot->generation < oldest->generation)) {
      oldest = slot.get();
    }
  }
  if (oldest != nullptr) return *oldest;
  std::uint32_t number = 0;
  for (const auto& slot : slots_) number = std::max(number, slot->number + 1);
  auto file = make_file(number);
  slots_.push_back(std::make_unique<Slot>());
  slots_.back()->number = number;
  slots_.back()->file = std::move(file);
  return *slots_.back();
}

std::unique_ptr<ContainerFile> NodeStore::make_file(std::uint32_t number) {
  auto file = file_system_->create(slot_path(number), 0600);
  if (!file) {
    throw Error(
        Failure{ErrorCode::io, "the name of a new container is taken; remove the file", -1, slot_path(number), 0});
  }
  return std::make_unique<ContainerFile>(std::move(file), location_.memory_backed, space_check());
}

/// A file that was removed behind our back is not an old container but a lost one: start over.
void NodeStore::replace_if_lost(Slot& slot) {
  if (slot.file && attempt([&] { slot.file->check_present(); })) {
    slot.file.reset();
    file_system_->remove(slot_path(slot.number));
  }
  if (slot.file || file_system_->status(slot_path(slot.number))) return;
  slot.file = make_file(slot.number);
}

ContainerFile& NodeStore::begin(std::uint64_t expected_bytes) {
  Slot& slot = free_slot();
  replace_if_lost(slot);
  // Also for a file that is not new: who made it may have died, or failed, before its name was durable.
  if (options_.durable) file_system_->sync_directory(location_.folder);
  ContainerFile& file = opened(slot);
  const auto failure = attempt([&] {
    file.unseal();
    file.reserve(expected_bytes);
  });
  if (failure) {
    (void)attempt([&] { discard(file); });  // tried again when the slot is needed
    throw Error(*failure);
  }
  slot.state = Slot::State::writing;
  slot.commit_id = Id128{};
  return file;
}

void NodeStore::sealed(ContainerFile& file, const Id128& commit_id, std::uint64_t generation) {
  Slot& slot = slot_of(file);
  slot.state = Slot::State::sealed;
  slot.intact = true;
  slot.commit_id = commit_id;
  slot.generation = generation;
}

void NodeStore::discard(ContainerFile& file) {
  Slot& slot = slot_of(file);
  slot.state = Slot::State::free;
  slot.commit_id = Id128{};
  // "Its space is freed": the pages of a checkpoint that came to nothing belong to the application again.
  if (!attempt([&] { file.empty(); })) return;
  // What cannot be unsealed must not be found as a container later: the file goes as a whole.
  const std::uint32_t number = slot.number;
  slot.file.reset();
  file_system_->remove(slot_path(number));
  std::erase_if(slots_, [&](const auto& each) { return each->number == number; });
}

void NodeStore::retire_all_but(const std::set<Id128>& keep) {
  for (const auto& slot : slots_) {
    // Retired and kept after all: it was opened again, or what was newer turned out to be damaged.
    const bool has_commit = slot->state == Slot::State::sealed || slot->state == Slot::State::retired;
    if (has_commit) slot->state = keep.contains(slot->commit_id) ? Slot::State::sealed : Slot::State::retired;
  }
  // One more than what is kept lets the next checkpoint be written; others are left over from earlier starts. The
  // newest retired one is spared, because it can still be offered.
  const auto idle = [](const Slot& slot) {
    return !slot.pinned && (slot.state == Slot::State::free || slot.state == Slot::State::retired);
  };
  const Slot* spared = nullptr;
  for (const auto& slot : slots_) {
    const auto worth = [](const Slot& one) { return std::pair(one.state == Slot::State::retired, one.generation); };
    if (idle(*slot) && (spared == nullptr || worth(*slot) > worth(*spared))) spared = slot.get();
  }
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    if (!idle(**slot) || slot->get() == spared) {
      ++slot;
      continue;
    }
    (*slot)->file.reset();
    file_system_->remove(slot_path((*slot)->number));  // if it throws, the slot is still there to be tried again
    slot = slots_.erase(slot);
  }
}

ContainerFile& NodeStore::pin(const Id128& commit_id) {
  for (const auto& slot : slots_) {
    const bool readable = slot->state == Slot::State::sealed || slot->state == Slot::State::retired;
    if (!readable || !slot->intact || slot->commit_id != commit_id) continue;
    ContainerFile& file = opened(*slot);
    file.check_present();
    slot->pinned = true;
    return file;
  }
  throw Error(Failure{ErrorCode::not_found, "no container of this commit is here", -1, location_.folder, 0});
}

void NodeStore::unpin(ContainerFile& file) { slot_of(file).pinned = false; }

std::string NodeStore::routed_path() {
  while (true) {
    std::string path =
        fs::join(location_.folder, compose("{}{}.{}", kRoutedPrefix, logical_rank_.value, routed_count_++));
    if (!file_system_->status(path)) return path;
  }
}

void NodeStore::sweep() {
  const std::string mine = compose("{}{}.", kRoutedPrefix, logical_rank_.value);
  for (const std::string& name : file_system_->list(location_.folder)) {
    // What somebody else put there and cannot be removed (a folder with files) must not keep the run from starting:
    // routed_path goes around it.
    if (name.starts_with(mine)) (void)attempt([&] { file_system_->remove(fs::join(location_.folder, name)); });
  }
}

void NodeStore::remove_all() {
  for (const auto& slot : slots_) {
    slot->file.reset();
    if (slot->state != Slot::State::foreign) file_system_->remove(slot_path(slot->number));
  }
  slots_.clear();
  sweep();
  if (options_.durable) file_system_->sync_directory(location_.folder);  // what is removed does not come back
}

std::uint64_t NodeStore::used_bytes() const {
  std::uint64_t used = 0;
  for (const auto& slot : slots_) {
    if (slot->file) {
      used += slot->file->size_bytes();
    } else if (const auto status = file_system_->status(slot_path(slot->number))) {
      used += status->size_bytes;
    }
  }
  return used;
}

}  // namespace kedge::store
