#include "persist/flush.hpp"

#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/vote.hpp"
#include "fs/copy.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::persist {
namespace {

constexpr std::uint32_t kFileBits = 0666;
constexpr std::uint64_t kBytesPerPatience = std::uint64_t{1} << 30U;

class Flush {
 public:
  Flush(Communicator& communicator, fs::FileSystem& file_system, Prefix* prefix, const FlushJob& job)
      : communicator_(communicator), file_system_(file_system), prefix_(prefix), job_(job) {}

  Flushed run() {
    Flushed flushed;
    std::uint64_t already = 0;
    std::optional<Failure> failure = vote(attempt([&] {
      if (prefix_ == nullptr) return;
      already = prefix_->confirm(job_.entry.directory, job_.entry.commit.id) ? 1 : 0;
      if (already == 0)
        prefix_->begin(job_.entry.directory, job_.entry.commit.world_size,
                       job_.entry.total_bytes + job_.manifest.size());
    }));
    if (!failure) {
      communicator_.broadcast(std::as_writable_bytes(std::span(&already, 1)), 0, deadline());
      if (already != 0) return flushed;
      failure = vote(attempt([&] { copy_container(); }));
    }
    if (!failure) {
      failure = vote(attempt([&] {
        if (prefix_ != nullptr) flushed.left_out = prefix_->commit(job_.entry, job_.manifest);
      }));
    }
    if (failure) undo(*failure);
    flushed.failure = std::move(failure);
    return flushed;
  }

 private:
  /// The slowest rank moves all that the job has, if need be over one narrow way.
  [[nodiscard]] Deadline deadline() const {
    const double share = static_cast<double>(job_.entry.total_bytes) / static_cast<double>(kBytesPerPatience);
    return Deadline::after(job_.patience * (1 + share));
  }
  [[nodiscard]] std::optional<Failure> vote(const std::optional<Failure>& local) const {
    return comm::vote(communicator_, local, deadline());
  }

  void copy_container() const {
    const std::string path = fs::join(fs::join(job_.prefix, job_.entry.directory), container_file(job_.logical_rank));
    file_system_.remove(path);  // of an attempt that failed
    const auto file = file_system_.create(path, job_.mode & kFileBits);
    if (!file) throw Error(Failure{ErrorCode::io, "something else makes files of the container's name", -1, path, 0});
    const std::uint64_t bytes = job_.file->size_bytes();
    const auto mapped = job_.file->mapped();
    const std::uint32_t crc = mapped.empty() ? fs::copy(job_.file->bytes(), *file, bytes) : fs::copy(mapped, *file);
    if (crc != job_.crc) {
      throw Error(
          Failure{ErrorCode::corrupt,
                  "the container changed after it was committed: it is not made persistent as it is; check this "
                  "node's memory or disk",
                  -1, job_.file->path(), 0});
    }
    file->sync();
  }

  /// An old start that was overtaken removes nothing any more.
  void undo(const Failure& failure) {
    if (failure.code == ErrorCode::busy || prefix_ == nullptr) return;
    (void)attempt([&] { prefix_->undo(job_.entry.directory); });
  }

  Communicator& communicator_;
  fs::FileSystem& file_system_;
  Prefix* prefix_;
  const FlushJob& job_;
};

}  // namespace

Flushed flush(Communicator& communicator, fs::FileSystem& file_system, Prefix* prefix, const FlushJob& job) {
  return Flush(communicator, file_system, prefix, job).run();
}

}  // namespace kedge::persist
