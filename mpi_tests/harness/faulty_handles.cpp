#include "harness/faulty_handles.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "checksum/crc32c.hpp"

namespace kedge::faults {
namespace {

/// An open file as both File and Mapping hold it; its destructor is the close.
class Handle {
 public:
  Handle(std::shared_ptr<DiskState> state, int rank, InodePtr node, std::string path, fs::Access access)
      : state_(std::move(state)),
        caller_{rank, state_->start},
        node_(std::move(node)),
        path_(std::move(path)),
        access_(access),
        mark_(node_->opened.lock()) {
    if (!mark_) node_->opened = mark_ = std::make_shared<OpenMark>();
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    const std::lock_guard guard(state_->mutex);
    mark_.reset();
    state_->tree.closed(*node_);
  }

  [[nodiscard]] DiskState& disk() const noexcept { return *state_; }
  [[nodiscard]] const Caller& caller() const noexcept { return caller_; }
  [[nodiscard]] Inode& node() const noexcept { return *node_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool is_writable() const noexcept { return access_ == fs::Access::read_write; }

  /// One piece after the other, each an operation; a mapping does not grow its file.
  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc, bool grows) {
    const std::size_t piece_bytes = disk().options.piece_bytes;
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
      const auto piece = bytes.subspan(at, std::min(piece_bytes, bytes.size() - at));
      disk().mutate_in_part(caller_, "write", path_, [&](const Verdict& verdict) {
        require_writable();
        const auto cut = verdict.dies() ? piece.first(verdict.random % (piece.size() + 1)) : piece;
        write(offset + at, cut, grows);
        crc = crc32c(piece, crc);
      });
    }
    return crc;
  }

  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) const {
    return disk().read(caller_, "read", path_, [&] {
      require_working(*node_->volume, false, "read", path_);
      require_readable(offset, bytes.size());
      fs::require_within(path_, offset, bytes.size(), node_->status.size_bytes);
      if (!bytes.empty()) std::memcpy(bytes.data(), node_->memory->data() + offset, bytes.size());
      count_read(bytes.size());
      return crc32c(bytes, crc);
    });
  }

  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) const {
    return disk().read(caller_, "read", path_, [&] {
      require_working(*node_->volume, false, "read", path_);
      require_readable(offset, length);
      fs::require_within(path_, offset, length, node_->status.size_bytes);
      count_read(length);
      const std::uint32_t sum = crc32c({node_->memory->data() + offset, length}, crc);
      flip_if_planned(offset, length);
      return sum;
    });
  }

  void count_read(std::uint64_t size_bytes) const {
    state_->bytes_read[state_->to_disk(caller_.rank, path_)] += size_bytes;
  }

  void require_readable(std::uint64_t offset, std::uint64_t length) const {
    if (length == 0 || offset + length <= node_->unreadable_from) return;
    fs::throw_system_error("read", path_, node_->unreadable_errno);
  }

  void require_writable() const {
    if (access_ != fs::Access::read_write) fs::throw_system_error("write to a file opened for reading", path_, EBADF);
    require_working(*node_->volume, true, "write", path_);
  }

  void resize(std::uint64_t size_bytes) const {
    if (const int error = disk().tree.resize(*node_, size_bytes); error != 0) {
      fs::throw_system_error("give the file its size", path_, error);
    }
  }

 private:
  void flip_if_planned(std::uint64_t offset, std::uint64_t length) const {
    const auto planned = state_->flips_when_verified.find(state_->to_disk(caller_.rank, path_));
    if (planned == state_->flips_when_verified.end()) return;
    const std::uint64_t at = planned->second;
    if (at < offset || at >= offset + length) return;
    node_->bytes()[at] ^= std::byte{1};
    state_->flips_when_verified.erase(planned);
  }

  void write(std::uint64_t offset, std::span<const std::byte> bytes, bool grows) {
    const std::uint64_t end = offset + bytes.size();
    if (grows && end > node_->status.size_bytes) resize(end);
    fs::require_within(path_, offset, bytes.size(), node_->status.size_bytes);  // the system would send SIGBUS
    if (!bytes.empty()) std::memcpy(node_->memory->data() + offset, bytes.data(), bytes.size());
    if (offset <= node_->backed_bytes) node_->backed_bytes = std::max(node_->backed_bytes, end);
    else node_->beyond.add(offset, end - offset);
  }

  std::shared_ptr<DiskState> state_;
  Caller caller_;
  InodePtr node_;
  std::string path_;
  fs::Access access_;
  std::shared_ptr<OpenMark> mark_;
};

class FaultyMapping final : public fs::Mapping {
 public:
  FaultyMapping(std::shared_ptr<Handle> handle, std::uint64_t size_bytes)
      : handle_(std::move(handle)), size_bytes_(size_bytes) {}

  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    fs::require_within(handle_->path(), offset, bytes.size(), size_bytes_);
    return handle_->write_with_crc(offset, bytes, crc, false);
  }
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    fs::require_within(handle_->path(), offset, bytes.size(), size_bytes_);
    return handle_->read_with_crc(offset, bytes, crc);
  }
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    fs::require_within(handle_->path(), offset, length, size_bytes_);
    return handle_->checksum(offset, length, crc);
  }
  std::span<const std::byte> bytes() const noexcept override { return {handle_->node().memory->data(), size_bytes_}; }
  std::span<std::byte> memory() noexcept override {
    if (!handle_->is_writable()) return {};
    return {handle_->node().memory->data(), size_bytes_};
  }
  bool prefault() noexcept override { return handle_->is_writable(); }

 private:
  std::shared_ptr<Handle> handle_;
  std::uint64_t size_bytes_;
};

class FaultyFile final : public fs::File {
 public:
  explicit FaultyFile(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}

  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    return handle_->write_with_crc(offset, bytes, crc, true);
  }
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    return handle_->read_with_crc(offset, bytes, crc);
  }
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    return handle_->checksum(offset, length, crc);
  }
  const std::string& path() const noexcept override { return handle_->path(); }
  fs::FileStatus status() override {
    return disk().read(handle_->caller(), "check the file's status", path(),
                       [&] { return handle_->node().status_now(); });
  }

  std::uint64_t reserve(std::uint64_t size_bytes) override {
    std::uint64_t old_bytes = 0;
    disk().mutate_in_part(handle_->caller(), "reserve", path(), [&](const Verdict& verdict) {
      handle_->require_writable();
      Inode& node = handle_->node();
      old_bytes = node.status.size_bytes;
      if (size_bytes > node.status.size_bytes) {
        const std::uint64_t missing = size_bytes - node.status.size_bytes;
        handle_->resize(verdict.dies() ? size_bytes - verdict.random % (missing + 1) : size_bytes);
      }
      node.backed_bytes = std::max(node.backed_bytes, std::min(size_bytes, node.status.size_bytes));
    });
    return std::min(old_bytes, size_bytes);
  }
  /// The systems of ranks with an odd number have some, of 4 KiB.
  std::uint64_t reserve_huge_pages(std::uint64_t size_bytes) override {
    constexpr std::uint64_t kHugePageBytes = 4096;
    if (handle_->caller().rank % 2 == 0) return 0;
    const std::uint64_t had = size_bytes / kHugePageBytes * kHugePageBytes;
    disk().mutate(handle_->caller(), "reserve huge pages", path(), [&] {
      handle_->require_writable();
      handle_->node().backed_bytes = std::max(handle_->node().backed_bytes, had);
    });
    return had;
  }
  void truncate(std::uint64_t size_bytes) override {
    disk().mutate(handle_->caller(), "truncate", path(), [&] {
      handle_->require_writable();
      handle_->resize(size_bytes);
    });
  }
  void sync() override {
    disk().mutate(handle_->caller(), "sync the file", path(), [&] {
      require_working(*handle_->node().volume, true, "sync the file", path());
      disk().tree.sync_file(handle_->node());
    });
  }
  std::unique_ptr<fs::Mapping> map(std::uint64_t size_bytes) override {
    return disk().read(handle_->caller(), "map", path(), [&]() -> std::unique_ptr<fs::Mapping> {
      const Inode& node = handle_->node();
      require_working(*node.volume, false, "map", path());
      fs::require_within(path(), 0, size_bytes, node.status.size_bytes);
      if (node.backed_bytes < size_bytes) {
        throw Error(Failure{ErrorCode::bad_state,
                            "the file has holes and cannot be mapped safely; reserve its space first", -1, path(), 0});
      }
      handle_->count_read(size_bytes);  // whatever of it is read from where it lies
      return std::make_unique<FaultyMapping>(handle_, size_bytes);
    });
  }

 private:
  [[nodiscard]] DiskState& disk() const noexcept { return handle_->disk(); }

  std::shared_ptr<Handle> handle_;
};

class FaultyLock final : public fs::Lock {
 public:
  FaultyLock(std::shared_ptr<DiskState> state, InodePtr node, std::uint64_t serial)
      : state_(std::move(state)), node_(std::move(node)), serial_(serial) {}
  ~FaultyLock() override {
    const std::lock_guard guard(state_->mutex);
    if (node_->lock && node_->lock->serial == serial_) node_->lock.reset();  // else it went with its process
  }

 private:
  std::shared_ptr<DiskState> state_;
  InodePtr node_;
  std::uint64_t serial_;
};

}  // namespace

void require_working(const MountedVolume& mounted, bool writes, std::string_view action, const std::string& path) {
  if (mounted.volume.read_errno != 0) fs::throw_system_error(action, path, mounted.volume.read_errno);
  if (writes && mounted.volume.write_errno != 0) fs::throw_system_error(action, path, mounted.volume.write_errno);
}

std::unique_ptr<fs::File> make_file(std::shared_ptr<DiskState> state, int rank, InodePtr node, std::string path,
                                    fs::Access access) {
  return std::make_unique<FaultyFile>(
      std::make_shared<Handle>(std::move(state), rank, std::move(node), std::move(path), access));
}

std::unique_ptr<fs::Lock> make_lock(std::shared_ptr<DiskState> state, InodePtr node, std::uint64_t serial) {
  return std::make_unique<FaultyLock>(std::move(state), std::move(node), serial);
}

}  // namespace kedge::faults
