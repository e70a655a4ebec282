// Files of the node-local store that come into being together: sealed on all ranks, or given up on all.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "comm/group.hpp"
#include "format/on_disk.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "store/node_store.hpp"
#include "store/pin.hpp"

namespace kedge::store {

/// A file that is being made. Its first 4096 bytes, which make it count, are held back in memory until it is sealed.
class UnsealedFile final : public fs::ByteAccess {
 public:
  UnsealedFile(StoreFile& file, const FileKey& key, std::uint64_t generation)
      : file_(file), key_(key), generation_(generation) {}

  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override;
  std::uint32_t write_xor(std::uint64_t offset, std::span<const std::span<const std::byte>> from,
                          std::uint32_t crc) override;
  [[nodiscard]] std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes,
                                            std::uint32_t crc) override;
  void read(std::uint64_t offset, std::span<std::byte> bytes) override;
  [[nodiscard]] std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override;

  using Head = std::array<std::byte, format::kSuperblockBytes>;
  /// First 4096 bytes, which the seal writes.
  [[nodiscard]] Head& head() noexcept { return head_; }
  [[nodiscard]] StoreFile& file() noexcept { return file_; }
  [[nodiscard]] const FileKey& key() const noexcept { return key_; }
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

 private:
  StoreFile& file_;
  FileKey key_;
  std::uint64_t generation_;
  Head head_{};
};

/// The files that one collective step reads and makes on this rank, and the two votes by which they become files of the
/// store. Whoever began one ends it with a seal or give_up(), but for what ends communication: then another rank may
/// have sealed, and nothing is taken back.
class SealTransaction {
 public:
  SealTransaction(comm::Group group, NodeStore& store, bool durable)
      : group_(std::move(group)), store_(store), durable_(durable) {}

  /// When the storage of a new file is taken: all of it before, so that what does not fit fails at once; or as it is
  /// written, where others would have to wait for it.
  enum class Storage : std::uint8_t { before, as_written };

  /// Local. A new file of exactly this size, this rank's own or `whose`; throws no_space, io.
  [[nodiscard]] UnsealedFile& begin(FileKind kind, const FileKey& key, std::uint64_t generation,
                                    std::uint64_t size_bytes, Storage storage = Storage::before,
                                    std::optional<LogicalRank> whose = {});
  /// Local. A new file whose writer takes storage as it needs it, and settles the size before ready(). `expected_bytes`
  /// must fit (0: unknown). Throws no_space, io.
  [[nodiscard]] UnsealedFile& begin_unsized(FileKind kind, const FileKey& key, std::uint64_t generation,
                                            std::uint64_t expected_bytes);
  /// COLLECTIVE. Runs `begin` on each rank, which begins the files that it `planned`, or fewer. If any of them needs
  /// new storage, all that the ranks of a node need is added up first, and nothing is taken if it does not fit. The
  /// first failure on any rank, the same on all; everything is given up then. Costs one vote if no storage is needed.
  [[nodiscard]] std::optional<Failure> begin_on_all_ranks(std::span<const PlannedFile> planned,
                                                          const std::function<void()>& begin);
  /// Local. An existing file to read from, until the end of this; throws not_found, io.
  [[nodiscard]] StoreFile& pin(FileKind kind, LogicalRank logical_rank, const FileKey& key);

  /// Local, the same on every rank. From now on another thread votes, over messages of its own.
  void continue_over(comm::Group group) { group_ = std::move(group); }
  /// COLLECTIVE. Votes: the first failure on any rank, the same on all; everything is given up then.
  [[nodiscard]] std::optional<Failure> vote(const std::optional<Failure>& local);
  /// COLLECTIVE. The first vote, *ready*: all that can fail but the seal is done, and flushed. The first failure on any
  /// rank, the same on all; everything is given up then.
  [[nodiscard]] std::optional<Failure> ready(const std::optional<Failure>& local);
  /// COLLECTIVE, after ready() without failure. All write their first 4096 bytes; the second vote, *sealed*. On a
  /// failure of any rank nothing stays sealed anywhere, and a further vote confirms this before it is returned.
  [[nodiscard]] std::optional<Failure> write_seals();
  /// COLLECTIVE. Both.
  [[nodiscard]] std::optional<Failure> seal(const std::optional<Failure>& local);

  /// Local. Discards what was begun; never throws Error.
  void give_up();
  /// The first of those files that give_up() could neither unseal nor remove, if any.
  [[nodiscard]] const std::optional<Failure>& left_behind() const noexcept { return left_behind_; }

 private:
  comm::Group group_;
  NodeStore& store_;
  bool durable_;
  bool is_ready_ = false;  ///< on all ranks
  std::deque<UnsealedFile> unsealed_files_;
  std::vector<Pin> pinned_;
  std::optional<Failure> left_behind_;
};

}  // namespace kedge::store
