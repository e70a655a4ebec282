// One file on the node-local store (container, parity, set descriptor): how bytes get into it and out again, by the
// kind of storage.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/byte_ranges.hpp"
#include "device/staging.hpp"
#include "format/container_writer.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "store/admission.hpp"
#include "store/write_combiner.hpp"

namespace kedge::store {

/// Who decides whether files may take storage.
class SpaceManager {
 public:
  SpaceManager() = default;
  SpaceManager(const SpaceManager&) = delete;
  SpaceManager& operator=(const SpaceManager&) = delete;

  /// Asked before a file takes `additional_bytes` of storage, which it has when what this returns is destroyed. Throws
  /// Error{no_space}.
  [[nodiscard]] virtual Admission::Admitted admit(std::uint64_t additional_bytes) const = 0;
  /// Whether all processes of this node could take so much. Throws io.
  [[nodiscard]] virtual bool has_ample_space(std::uint64_t additional_bytes) const = 0;
  /// Throws what the system said when it `refused` them all the same, with what is needed and what is free.
  [[noreturn]] virtual void explain(const Failure& refused, std::uint64_t additional_bytes) const = 0;

 protected:
  ~SpaceManager() = default;
};

/// An open file. On memory-backed stores it is mapped once and refilled by plain copies; storage that is new is written
/// by pwrite the first time, because a page that a mapping touches first has to be cleared and entered for it. On block
/// storage it is written in large pieces and read with pread, never mapped, and devices may write it past the page
/// cache, between two seals. Stays open, and mapped, while it is recycled.
class StoreFile final : public format::ContainerTarget {
 public:
  /// `space` must outlive it.
  StoreFile(std::unique_ptr<fs::File> file, bool memory_backed, const SpaceManager& space);
  ~StoreFile() override;

  void reserve(std::uint64_t size_bytes) override;
  std::uint64_t reserve_ahead(std::uint64_t size_bytes, std::uint64_t wished_bytes) override;
  /// Only after something was reserved; else throws Error{io}.
  [[nodiscard]] fs::ByteAccess& bytes() override;
  [[nodiscard]] device::HostMemory memory() noexcept override;
  [[nodiscard]] device::FileTarget direct_file() noexcept override;
  void set_size(std::uint64_t size_bytes) override;
  /// For who writes every byte of it once: an empty file on a memory-backed store gets this size, and its storage as it
  /// is written, until flush(). Taking it all before would make others wait. Else set_size. Throws no_space, io.
  void grow_as_written(std::uint64_t size_bytes);
  /// Local. Has its storage cleared and entered, where that can be done ahead: the first copy costs no more then than
  /// one into a recycled file.
  void prefault() noexcept;
  /// The file's bytes where they lie, on memory-backed stores; empty elsewhere. Valid until the size changes.
  [[nodiscard]] std::span<const std::byte> mapped() const noexcept;
  [[nodiscard]] bool is_mapped() const noexcept { return mapping_ != nullptr && size_bytes_ != 0; }

  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }

  /// Throws Error{io} if the file was removed or truncated by another process since the last call. Called at the start
  /// of an engine call that will touch the bytes, so that a mapping never reaches past the file's end.
  void require_present();
  /// Whether it has a second name: a backup by hard links, which must not change with it.
  [[nodiscard]] bool is_shared() { return file_->status().links > 1; }
  /// Hands everything written so far to the system, and where `durable`, to stable storage.
  void flush(bool durable);
  /// Local. Marks the file as written: what comes next refills it.
  void filled() noexcept {
    new_from_ = UINT64_MAX;
    ++fills_;
  }
  /// Makes it nobody's any more: zeroes its first 4096 bytes, where all kinds have their seal. Where the store is not
  /// memory, this is on stable storage before it returns, because the next bytes written would contradict the old seal.
  void unseal();
  /// Unseals and gives all of the storage back.
  void empty();

 private:
  /// Goes by the mapping, but writes where the storage is new by pwrite; all by calls while it grows as written.
  class MemoryAccess final : public fs::ByteAccess {
   public:
    explicit MemoryAccess(StoreFile& file) : file_(file) {}
    std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override;
    std::uint32_t write_xor(std::uint64_t offset, std::span<const std::span<const std::byte>> from,
                            std::uint32_t crc) override;
    [[nodiscard]] std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes,
                                              std::uint32_t crc) override;
    void read(std::uint64_t offset, std::span<std::byte> bytes) override;
    [[nodiscard]] std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override;

   private:
    StoreFile& file_;
  };

  template <class Write>
  std::uint32_t with_space_message(std::uint64_t length, Write&& write) const;
  void end_access() noexcept;
  void unmap() noexcept;
  void drop_mapping();
  [[noreturn]] void throw_truncated() const;
  void add_written(std::uint64_t offset, std::uint64_t length);
  std::uint64_t take_storage(std::uint64_t size_bytes, std::uint64_t additional_bytes);
  void set_new_from(std::uint64_t new_from, std::uint64_t size_bytes) noexcept;
  void use(std::uint64_t size_bytes);
  [[nodiscard]] fs::ByteAccess& access_for_write(std::uint64_t offset, std::uint64_t length) const noexcept;

  std::unique_ptr<fs::File> file_;
  bool memory_backed_;
  const SpaceManager& space_;
  std::atomic<std::uint64_t> size_bytes_ = 0;           ///< looked at by other threads' saves while one makes it grow
  std::unique_ptr<fs::Mapping> mapping_;                // memory-backed
  std::shared_ptr<device::MemoryRegistration> access_;  ///< to the mapping; ended before that is unmapped
  std::atomic<unsigned> fills_ = 0;                     ///< of the mapping
  MemoryAccess memory_access_{*this};
  bool grows_ = false;  ///< as it is written; there is no mapping then
  std::mutex written_mutex_;
  ByteRanges written_;                                     ///< while it grows
  std::atomic<std::uint64_t> new_from_ = UINT64_MAX;       ///< storage from here on was never written; till filled()
  std::unique_ptr<WriteCombiner> combiner_;                // block storage
  std::shared_ptr<device::FileRegistration> file_access_;  ///< on block storage; ended before the file is sealed
};

}  // namespace kedge::store
