// Files of the node-local store that come into being together: sealed on all ranks, or given up on all.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "format/on_disk.hpp"
#include "fs/file_system.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"
#include "store/node_store.hpp"

namespace kedge::redundancy {

using Patience = std::chrono::duration<double>;

/// A file that is being made. Its first 4096 bytes, which make it count, are held back in memory until seal().
class Draft final : public fs::ByteAccess {
 public:
  Draft(store::StoreFile& file, store::FileKey key, std::uint64_t generation)
      : file_(file), key_(key), generation_(generation) {}

  std::uint32_t copy_in(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override;
  [[nodiscard]] std::uint32_t copy_out(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override;
  [[nodiscard]] std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override;

  using Head = std::array<std::byte, format::kSuperblockBytes>;
  /// What seal() writes.
  [[nodiscard]] Head& head() noexcept { return head_; }
  [[nodiscard]] store::StoreFile& file() noexcept { return file_; }
  [[nodiscard]] const store::FileKey& key() const noexcept { return key_; }
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

 private:
  store::StoreFile& file_;
  store::FileKey key_;
  std::uint64_t generation_;
  Head head_{};
};

/// The files that one collective step reads and makes on this rank. Whoever began one ends it with seal() or give_up().
class Drafts {
 public:
  Drafts(Communicator& communicator, store::NodeStore& store, bool durable, Patience patience)
      : communicator_(communicator), store_(store), durable_(durable), patience_(patience) {}

  /// When the storage of a new file is taken: all of it before, so that what does not fit fails at once; or as it is
  /// written, where others would have to wait for it.
  enum class Storage : std::uint8_t { before, as_written };

  /// Local. A new file of exactly this size; throws no_space, io.
  [[nodiscard]] Draft& begin(store::FileKind kind, const store::FileKey& key, std::uint64_t generation,
                             std::uint64_t size_bytes, Storage storage = Storage::before);
  /// Local. An existing file to read from; throws not_found, io.
  [[nodiscard]] store::StoreFile& pin(store::FileKind kind, LogicalRank logical_rank, const store::FileKey& key);

  /// COLLECTIVE. The first failure on any rank, the same on all; everything is given up then.
  [[nodiscard]] std::optional<Failure> vote(const std::optional<Failure>& local);
  /// COLLECTIVE. The two votes of a commit: all that can fail is done everywhere, then all seal. On a failure of any
  /// rank, in either, nothing stays sealed anywhere, and this is confirmed before it is returned.
  [[nodiscard]] std::optional<Failure> seal(const std::optional<Failure>& local);

 private:
  void give_up();
  void unpin();

  Communicator& communicator_;
  store::NodeStore& store_;
  bool durable_;
  Patience patience_;
  std::deque<Draft> drafts_;
  std::vector<store::StoreFile*> pinned_;
};

}  // namespace kedge::redundancy
