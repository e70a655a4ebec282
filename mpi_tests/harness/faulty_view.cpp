// The file system of one rank on the faulty disk.
#include <algorithm>
#include <cerrno>

#include "harness/faulty_handles.hpp"
#include "harness/faulty_state.hpp"

namespace kedge::faults {
namespace {

using fs::Access;
using fs::throw_system_error;
using Kind = fs::FileStatus::Kind;
constexpr unsigned kRead = 4;
constexpr unsigned kWrite = 2;
constexpr std::uint32_t kSticky = 01000;

class View final : public fs::FileSystem {
 public:
  View(std::shared_ptr<DiskState> state, int rank) : state_(std::move(state)), caller_{rank, Caller::kAnyStart} {}

  std::unique_ptr<fs::File> open(const std::string& path, Access access) override {
    return state_->read(caller_, "open", path, [&] {
      const Place place = existing("open", path, access == Access::read_write);
      if (const int error = why_not_open(*place.node, access); error != 0) throw_system_error("open", path, error);
      if (access == Access::read_write) make_mesh_plans(path, place);
      return make_file(state_, caller_.rank, place.node, path, access);
    });
  }

  std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    std::unique_ptr<fs::File> file;
    state_->mutate(caller_, "create", path, [&] {
      Place place = locate("create", path, true);
      if (place.node) {
        if (place.node->is(Kind::link)) throw_system_error("create", path, ELOOP);
        return;
      }
      add(place, "create", path, {Kind::file, 0, state_->options.user, mode, 1, state_->options.group});
      file = make_file(state_, caller_.rank, place.node, path, Access::read_write);
    });
    return file;
  }

  void remove(const std::string& path) override {
    state_->mutate(caller_, "remove", path, [&] {
      const Place place = locate("remove", path, true, Missing::directory_too);
      if (!place.node) return;
      require_may_change("remove", path, place);
      if (!place.node->names.empty()) throw_system_error("remove", path, ENOTEMPTY);
      state_->tree.erase(place);
    });
  }

  void rename(const std::string& from, const std::string& to) override {
    state_->mutate(caller_, "rename to " + to, from, [&] {
      const Place source = existing("rename", from, true);
      const Place target = locate("rename", to, true);
      if (source.node == target.node) return;
      require_may_change("rename", from, source);
      require_may_change("rename", to, target);
      if (const int error = why_not_rename(source, target); error != 0)
        throw_system_error("rename to " + to, from, error);
      state_->tree.move(source, target);
    });
  }

  void make_directory(const std::string& path, std::uint32_t mode) override {
    state_->mutate(caller_, "create the directory", path, [&] {
      Place place = locate("create the directory", path, true);
      if (place.node) {
        if (place.node->is(Kind::directory)) return;
        throw_system_error("create the directory", path, place.node->is(Kind::link) ? ELOOP : ENOTDIR);
      }
      add(place, "create the directory", path,
          {Kind::directory, 0, state_->options.user, mode, 2, state_->options.group});
    });
  }

  std::vector<std::string> list(const std::string& path) override {
    return state_->read(caller_, "list the directory", path, [&] {
      const Place place = existing_directory("list the directory", path, false);
      if (!may(*place.node, kRead)) throw_system_error("list the directory", path, EACCES);
      std::vector<std::string> names;
      for (const auto& [name, node] : place.node->names) names.push_back(name);
      return names;
    });
  }

  std::optional<fs::FileStatus> status(const std::string& path) override {
    return state_->read(caller_, "check the path", path, [&]() -> std::optional<fs::FileStatus> {
      const Place place = locate("check the path", path, false, Missing::directory_too);
      if (!place.node) return std::nullopt;
      return place.node->status_now();
    });
  }

  void sync_directory(const std::string& path) override {
    state_->mutate(caller_, "sync the directory", path,
                   [&] { state_->tree.sync_names(existing_directory("sync the directory", path, true).node); });
  }

  fs::Space space(const std::string& path) override {
    return state_->read(caller_, "query the free space", path, [&] {
      const auto& mounted = *existing("query the free space", path, false).node->volume;
      const auto& volume = mounted.volume;
      const auto left = [](std::uint64_t capacity, std::uint64_t used) {
        return capacity > used ? capacity - used : 0;
      };
      const auto id = reinterpret_cast<std::uint64_t>(&mounted);
      fs::Space space{left(volume.capacity_bytes, mounted.used_bytes),
                      left(volume.capacity_inodes, mounted.used_inodes),
                      volume.memory_backed,
                      volume.limit,
                      {},
                      volume.capacity_bytes,
                      volume.machine_bytes};
      space.space_limits.push_back({space.free_bytes, space.limit, id});
      if (volume.cgroup_bytes != 0) {
        space.space_limits.push_back({left(volume.cgroup_bytes, mounted.used_bytes), "memory cgroup", id + 1});
        if (space.space_limits.back().free_bytes < space.free_bytes) {
          space.free_bytes = space.space_limits.back().free_bytes;
          space.limit = space.space_limits.back().limit;
        }
      }
      return space;
    });
  }

  std::string canonical(const std::string& path) override {
    return state_->read(caller_, "resolve the path", path, [&] {
      const Place place = state_->tree.find(state_->to_disk(caller_.rank, path), true);
      const int error = place.error != 0 ? place.error : place.node ? 0 : ENOENT;
      if (error != 0) throw_system_error("resolve the path", path, error);
      require_working(*place.node->volume, false, "resolve the path", path);
      return state_->to_rank(caller_.rank, place.path);
    });
  }

  std::unique_ptr<fs::Lock> try_lock(const std::string& path, std::string_view holder) override {
    std::unique_ptr<fs::Lock> lock;
    state_->mutate(caller_, "lock the file", path, [&] {
      Place place = locate("lock the file", path, true);
      if (!place.node)
        add(place, "lock the file", path, {Kind::file, 0, state_->options.user, 0600, 1, state_->options.group});
      const int error = why_not_open(*place.node, Access::read_write);
      if (error != 0) throw_system_error("lock the file", path, error);
      if (place.node->lock) return;
      place.node->lock = LockRecord{caller_.rank, ++state_->last_lock_serial, std::string(holder)};
      lock = make_lock(state_, place.node, place.node->lock->serial);
    });
    return lock;
  }

  std::optional<std::string> lock_holder(const std::string& path) override {
    return state_->read(caller_, "query the lock's holder", path, [&]() -> std::optional<std::string> {
      const Place place = locate("query the lock's holder", path, false, Missing::directory_too);
      if (!place.node) return std::nullopt;
      const auto& lock = place.node->lock;
      // What this process holds it knows without opening the file.
      const int error = lock && lock->rank == caller_.rank ? 0 : why_not_open(*place.node, Access::read);
      if (error != 0) throw_system_error("query the lock's holder", path, error);
      return lock ? std::optional(lock->text) : std::nullopt;
    });
  }

  bool holds_lock(const std::string& path) override {
    return state_->read(caller_, "query the lock's holder", path, [&] {
      const Place place = locate("query the lock's holder", path, false, Missing::directory_too);
      return place.node && place.node->lock && place.node->lock->rank == caller_.rank;
    });
  }

  std::uint32_t user() const noexcept override { return state_->options.user; }
  bool in_group(std::uint32_t group) const override {
    const auto& more = state_->options.more_groups;
    return group == state_->options.group || std::find(more.begin(), more.end(), group) != more.end();
  }

 private:
  enum class Missing : std::uint8_t { name_only, directory_too };

  /// Where the path leads; `node` is null if the name is free, and with Missing::directory_too also if its directory
  /// does not exist.
  Place locate(std::string_view action, const std::string& path, bool writes, Missing missing = Missing::name_only) {
    const std::string on_disk = state_->to_disk(caller_.rank, path);
    require_working(*state_->tree.volume_of(on_disk), writes, action, path);
    Place place = state_->tree.find(on_disk);
    const bool fine = place.error == ENOENT && missing == Missing::directory_too;
    if (place.error != 0 && !fine) throw_system_error(action, path, place.error);
    return place;
  }
  Place existing(std::string_view action, const std::string& path, bool writes) {
    Place place = locate(action, path, writes);
    if (!place.node) throw_system_error(action, path, ENOENT);
    return place;
  }
  Place existing_directory(std::string_view action, const std::string& path, bool writes) {
    Place place = existing(action, path, writes);
    if (place.node->is(Kind::link)) throw_system_error(action, path, ELOOP);
    if (!place.node->is(Kind::directory)) throw_system_error(action, path, ENOTDIR);
    return place;
  }

  [[nodiscard]] bool may(const Inode& node, unsigned bits) const {
    if (user() == 0) return true;
    const unsigned shift = node.status.owner == user() ? 6 : in_group(node.status.group) ? 3 : 0;
    return ((node.status.mode >> shift) & bits) == bits;
  }
  [[nodiscard]] int why_not_open(const Inode& node, Access access) const {
    if (node.is(Kind::link)) return ELOOP;
    if (node.is(Kind::directory)) return EISDIR;
    if (!node.is(Kind::file)) return ENXIO;
    if (node.refuses_open) return EIO;
    return may(node, access == Access::read ? kRead : kRead | kWrite) ? 0 : EACCES;
  }
  [[nodiscard]] static int why_not_rename(const Place& source, const Place& target) {
    if (source.node->volume != target.directory->volume) return EXDEV;
    if (!target.node) return 0;
    const bool directory = source.node->is(Kind::directory);
    if (target.node->is(Kind::directory)) return !directory ? EISDIR : target.node->names.empty() ? 0 : ENOTEMPTY;
    return directory ? ENOTDIR : 0;
  }
  void require_may_change(std::string_view action, const std::string& path, const Place& place) const {
    if (!place.directory) throw_system_error(action, path, EBUSY);
    if (!may(*place.directory, kWrite)) throw_system_error(action, path, EACCES);
    const auto& directory = place.directory->status;
    const bool foreign = place.node && place.node->status.owner != user() && directory.owner != user() && user() != 0;
    if (foreign && (directory.mode & kSticky) != 0) throw_system_error(action, path, EPERM);
  }
  void make_mesh_plans(const std::string& path, const Place& place) {
    if (state_->vanish_when_opened.erase(place.path) != 0) {
      state_->tree.erase(place);
      throw_system_error("open", path, ENOENT);
    }
    const auto planned = state_->flips_when_opened.find(place.path);
    if (planned == state_->flips_when_opened.end()) return;
    const auto bytes = place.node->bytes();
    if (planned->second >= bytes.size()) return;  // the file was made anew, and is shorter until it is written
    bytes[planned->second] ^= std::byte{1};
    state_->flips_when_opened.erase(planned);
  }
  void add(Place& place, std::string_view action, const std::string& path, const fs::FileStatus& status) {
    if (!may(*place.directory, kWrite)) throw_system_error(action, path, EACCES);
    if (const int error = state_->tree.add(place, status); error != 0) throw_system_error(action, path, error);
  }

  std::shared_ptr<DiskState> state_;
  Caller caller_;
};

}  // namespace

std::shared_ptr<fs::FileSystem> make_view(std::shared_ptr<DiskState> state, int rank) {
  return std::make_shared<View>(std::move(state), rank);
}

}  // namespace kedge::faults
