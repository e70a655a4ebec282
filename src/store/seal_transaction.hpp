// Seals several files of the node-local store on all ranks, or on none.
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

/// A file being made. Its first 4096 bytes, which make it valid, stay in memory until the seal.
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
  /// The first 4096 bytes, which the seal writes.
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

/// The files that a collective step reads and makes on this rank, and the two votes that seal them. End a transaction
/// with a seal or abort(), unless communication has ended: another rank may have sealed then, so nothing is undone.
class SealTransaction {
 public:
  SealTransaction(comm::Group group, NodeStore& store, bool durable)
      : group_(std::move(group)), store_(store), durable_(durable) {}

  /// The moment at which a new file takes its storage: all in advance, which fails early, or as it is written, if
  /// others would have to wait for it.
  enum class Storage : std::uint8_t { before, as_written };

  /// Local. Begins a file of exactly this size. Throws no_space, io.
  [[nodiscard]] UnsealedFile& begin_file(FileKind kind, const FileKey& key, std::uint64_t generation,
                                         std::uint64_t size_bytes, Storage storage = Storage::before,
                                         std::optional<LogicalRank> owner = {});
  /// Local. A new file whose writer takes storage as it needs it, and settles the size before vote_ready().
  /// `expected_bytes` must fit (0: unknown). Throws no_space, io.
  [[nodiscard]] UnsealedFile& begin_unsized_file(FileKind kind, const FileKey& key, std::uint64_t generation,
                                                 std::uint64_t expected_bytes);
  /// COLLECTIVE. Calls `begin` on each rank, which begins the `planned` files or fewer. If any needs new storage, first
  /// adds up the needs of each node's ranks, and takes nothing unless they fit. Returns the first failure of any rank,
  /// on all alike, with all files discarded. Costs one vote if no storage is needed.
  [[nodiscard]] std::optional<Failure> begin_on_all_ranks(std::span<const PlannedFile> planned,
                                                          const std::function<void()>& begin);
  /// Local. Pins an existing file for reading until the end of this. Throws not_found, io.
  [[nodiscard]] StoreFile& pin(FileKind kind, LogicalRank logical_rank, const FileKey& key);

  /// Local, on every rank alike. Lets another thread hold the votes, over its own communicator.
  void set_group(comm::Group group) { group_ = std::move(group); }
  /// COLLECTIVE. Votes; returns the first failure of any rank, on all alike, with all files discarded.
  [[nodiscard]] std::optional<Failure> vote(const std::optional<Failure>& local);
  /// COLLECTIVE. The first vote, *ready*: all is written and flushed but the seal. Returns the first failure of any
  /// rank, on all alike, with all files discarded.
  [[nodiscard]] std::optional<Failure> vote_ready(const std::optional<Failure>& local);
  /// COLLECTIVE, after vote_ready() succeeded. Writes the first 4096 bytes everywhere and takes the second vote,
  /// *sealed*. If any rank fails, nothing stays sealed on any rank, which another vote confirms.
  [[nodiscard]] std::optional<Failure> write_seals();
  /// COLLECTIVE. vote_ready() and write_seals().
  [[nodiscard]] std::optional<Failure> seal(const std::optional<Failure>& local);

  /// Local. Discards the begun files; never throws Error.
  void abort();
  /// Returns why a file could be neither unsealed nor removed by abort(), if any.
  [[nodiscard]] const std::optional<Failure>& discard_failure() const noexcept { return discard_failure_; }

 private:
  comm::Group group_;
  NodeStore& store_;
  bool durable_;
  bool is_ready_ = false;  ///< whether all ranks voted ready
  std::deque<UnsealedFile> unsealed_files_;
  std::vector<Pin> pins_;
  std::optional<Failure> discard_failure_;
};

}  // namespace kedge::store
