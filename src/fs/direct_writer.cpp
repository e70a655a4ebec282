#include "fs/direct_writer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <utility>

#include "base/keep_forever.hpp"
#include "checksum/copy_with_checksum.hpp"
#include "fs/system_error.hpp"

namespace kedge::fs {

/// A queue with a bounce buffer for each of its slots.
class DirectWriter::Unit {
 public:
  explicit Unit(std::unique_ptr<IoQueue> queue) : queue_(std::move(queue)) {
    void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) memory_ = static_cast<std::byte*>(memory);
  }
  ~Unit() {
    queue_.reset();  // first, because it waits for writes that read the buffers
    if (memory_ != nullptr) ::munmap(memory_, kBytes);
  }
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  [[nodiscard]] bool usable() const noexcept { return memory_ != nullptr; }
  [[nodiscard]] IoQueue& queue() noexcept { return *queue_; }
  [[nodiscard]] std::byte* buffer(unsigned slot) noexcept { return memory_ + slot * kPieceBytes; }

 private:
  static constexpr std::size_t kBytes = kDepth * kPieceBytes;
  std::unique_ptr<IoQueue> queue_;
  std::byte* memory_ = nullptr;
};

/// Takes a unit for one write.
class DirectWriter::Lease {
 public:
  Lease(DirectWriter& writer, std::unique_ptr<Unit> unit) noexcept : writer_(writer), unit_(std::move(unit)) {}
  ~Lease() { writer_.return_unit(std::move(unit_)); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  [[nodiscard]] Unit& unit() noexcept { return *unit_; }
  /// Gives the buffers up: the kernel may still read them, so they are neither freed nor reused.
  void abandon_buffers() noexcept {
    try {
      keep_forever(std::move(unit_));
    } catch (const std::exception&) {
      (void)unit_.release();  // out of memory: leaks the unit
    }
  }

 private:
  DirectWriter& writer_;
  std::unique_ptr<Unit> unit_;
};

/// The pieces of one write that are in progress.
class DirectWriter::WritesInProgress {
 public:
  WritesInProgress(Lease& lease, const Target& target) noexcept : lease_(lease), target_(target) {}
  /// Waits until nothing reads the buffers, also if an exception is thrown.
  ~WritesInProgress() {
    while (!lost_ && in_progress_ != 0) (void)reap();
    if (lost_) lease_.abandon_buffers();
  }
  WritesInProgress(const WritesInProgress&) = delete;
  WritesInProgress& operator=(const WritesInProgress&) = delete;

  [[nodiscard]] bool empty() const noexcept { return in_progress_ == 0; }
  [[nodiscard]] bool full() const noexcept { return in_progress_ == kDepth; }

  /// Requires a free slot.
  std::uint32_t start(std::uint64_t offset, std::span<const std::byte> piece, std::uint32_t crc) {
    const auto free = std::find_if(pieces_.begin(), pieces_.end(), [](const Piece& one) { return one.length == 0; });
    const auto slot = static_cast<unsigned>(free - pieces_.begin());
    std::byte* buffer = lease_.unit().buffer(slot);
    crc = copy_with_checksum({buffer, piece.size()}, piece, crc);
    const int refused = lease_.unit().queue().start_write(slot, target_.descriptor, buffer, piece.size(), offset);
    if (refused != 0) {
      target_.write_rest(offset, piece);
      return crc;
    }
    *free = {offset, piece.size()};
    ++in_progress_;
    return crc;
  }

  /// Waits for one piece, and writes what the kernel left of it.
  void finish_one() {
    const auto [slot, piece, result] = reap();
    if (lost_) throw_system_error("write", target_.path, -result);
    // If device or filesystem refuses such writes, the ordinary way is taken.
    const bool unfit = result == -EINVAL || result == -EOPNOTSUPP || result == -EAGAIN || result == -EINTR;
    if (result < 0 && !unfit) throw_system_error("write", target_.path, -result);
    const std::size_t written = std::min(static_cast<std::size_t>(std::max(result, 0)), piece.length);
    if (written == piece.length) return;
    target_.write_rest(piece.offset + written, {lease_.unit().buffer(slot) + written, piece.length - written});
  }

 private:
  struct Piece {
    std::uint64_t offset = 0;
    std::size_t length = 0;  // 0 if the slot is free
  };
  struct Reaped {
    unsigned slot = 0;
    Piece piece;
    int result = 0;
  };

  Reaped reap() noexcept {
    const IoQueue::Completion done = lease_.unit().queue().wait_for_write();
    lost_ = done.is_queue_lost || done.slot >= kDepth;
    if (lost_) return {0, {}, done.result};
    --in_progress_;
    return {done.slot, std::exchange(pieces_[done.slot], {}), done.result};
  }

  Lease& lease_;
  const Target& target_;
  std::array<Piece, kDepth> pieces_{};
  unsigned in_progress_ = 0;
  bool lost_ = false;
};

DirectWriter::DirectWriter(MakeQueue make_queue) : make_queue_(std::move(make_queue)) {}

DirectWriter::~DirectWriter() = default;

std::optional<std::uint32_t> DirectWriter::write(const Target& target, std::uint64_t offset,
                                                 std::span<const std::byte> bytes, std::uint32_t crc) {
  std::unique_ptr<Unit> unit = take_unit();
  if (!unit) return std::nullopt;
  Lease lease(*this, std::move(unit));
  WritesInProgress flight(lease, target);
  for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    if (flight.full()) flight.finish_one();
    crc = flight.start(offset + at, bytes.subspan(at, std::min(kPieceBytes, bytes.size() - at)), crc);
  }
  while (!flight.empty()) flight.finish_one();
  return crc;
}

int DirectWriter::refusal_errno() const {
  const std::lock_guard guard(mutex_);
  return refusal_errno_;
}

/// Null if the system grants none.
std::unique_ptr<DirectWriter::Unit> DirectWriter::take_unit() {
  std::unique_lock lock(mutex_);
  while (idle_units_.empty() && refusal_errno_ == 0) {
    if (unit_count_ == kUnitsMax) {
      unit_returned_.wait(lock);
      continue;
    }
    idle_units_.reserve(kUnitsMax);  // makes returning units noexcept
    std::unique_ptr<IoQueue> queue = make_queue_(kDepth);
    if (!queue) {
      // If the system grants one queue but refuses a second (locked memory), all threads share the first.
      if (unit_count_ == 0) refusal_errno_ = errno == 0 ? ENOSYS : errno;
      else unit_returned_.wait(lock);
      continue;
    }
    auto unit = std::make_unique<Unit>(std::move(queue));
    if (!unit->usable()) {
      refusal_errno_ = ENOMEM;
      continue;
    }
    ++unit_count_;
    return unit;
  }
  if (idle_units_.empty()) return nullptr;
  std::unique_ptr<Unit> unit = std::move(idle_units_.back());
  idle_units_.pop_back();
  return unit;
}

void DirectWriter::return_unit(std::unique_ptr<Unit> unit) noexcept {
  const std::lock_guard guard(mutex_);
  if (unit) idle_units_.push_back(std::move(unit));
  else --unit_count_;
  unit_returned_.notify_one();
}

}  // namespace kedge::fs
