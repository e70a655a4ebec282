// A file on the node-local store (container, parity, set descriptor), read and written as its storage requires.
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

/// Decides whether files may take storage.
class SpaceManager {
 public:
  SpaceManager() = default;
  SpaceManager(const SpaceManager&) = delete;
  SpaceManager& operator=(const SpaceManager&) = delete;

  /// Called before a file takes `additional_bytes` of storage, which it must have when the result is destroyed. Throws
  /// Error{no_space}.
  [[nodiscard]] virtual Admission::Admitted admit_bytes(std::uint64_t additional_bytes) const = 0;
  /// Whether all processes of this node could take this much. Throws io.
  [[nodiscard]] virtual bool has_ample_space(std::uint64_t additional_bytes) const = 0;
  /// Throws the system's refusal together with needed and free bytes.
  [[noreturn]] virtual void throw_refusal(const Failure& refused, std::uint64_t additional_bytes) const = 0;

 protected:
  ~SpaceManager() = default;
};

/// An open file. On memory-backed stores it is mapped once and refilled by copies; new storage is first written with
/// pwrite, because a page first touched through a mapping must be cleared and mapped. On block storage it is written in
/// large pieces, read with pread and never mapped; devices may write it past the page cache until the seal. Files stay
/// open, and mapped, when reused.
class StoreFile final : public format::ContainerTarget {
 public:
  StoreFile(std::unique_ptr<fs::File> file, bool memory_backed, const SpaceManager& space);
  ~StoreFile() override;

  void reserve(std::uint64_t size_bytes) override;
  std::uint64_t reserve_ahead(std::uint64_t size_bytes, std::uint64_t wished_bytes) override;
  /// Throws Error{io} unless something was reserved.
  [[nodiscard]] fs::ByteAccess& bytes() override;
  [[nodiscard]] device::HostMemory memory() noexcept override;
  [[nodiscard]] device::FileTarget direct_file() noexcept override;
  void set_size(std::uint64_t size_bytes) override;
  /// For files whose every byte is written once. On a memory-backed store, sets the size of an empty file and takes
  /// storage as it is written, until flush(): taking it in advance would make others wait. Otherwise calls set_size.
  /// Throws no_space, io.
  void grow_as_written(std::uint64_t size_bytes);
  /// Local. Clears and maps the storage in advance where possible: the first copy then costs no more than one into a
  /// reused file.
  void prefault() noexcept;
  /// The file's bytes in memory; empty on other stores. Valid until the size changes.
  [[nodiscard]] std::span<const std::byte> mapped() const noexcept;
  [[nodiscard]] bool is_mapped() const noexcept { return mapping_ != nullptr && size_bytes_ != 0; }

  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }

  /// Throws Error{io} if the file was removed or truncated by another process since the last call. Called at the start
  /// of an engine call that will touch the bytes, so that a mapping never reaches past the file's end.
  void require_present();
  /// Whether it has a second name: a backup by hard links, which must not change with it.
  [[nodiscard]] bool is_shared() { return file_->status().links > 1; }
  /// Passes all writes to the system and, if `durable`, to stable storage.
  void flush(bool durable);
  /// Local. Marks the file as written: further writes refill it.
  void mark_filled() noexcept {
    new_from_ = UINT64_MAX;
    ++fill_count_;
  }
  /// Invalidates the file by zeroing its first 4096 bytes, where all kinds have their seal. On disks it syncs, because
  /// the next writes would contradict the old seal.
  void unseal();
  /// Unseals the file and frees its storage.
  void unseal_and_free();

 private:
  /// Copies through the mapping, but writes new storage with pwrite; a file that grows as written uses only calls.
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
  void end_registrations() noexcept;
  void unmap() noexcept;
  void drop_mapping();
  [[noreturn]] void throw_truncated() const;
  void add_written(std::uint64_t offset, std::uint64_t length);
  std::uint64_t take_storage(std::uint64_t size_bytes, std::uint64_t additional_bytes);
  void set_new_from(std::uint64_t new_from, std::uint64_t size_bytes) noexcept;
  void set_used_size(std::uint64_t size_bytes);
  [[nodiscard]] fs::ByteAccess& access_for_write(std::uint64_t offset, std::uint64_t length) const noexcept;

  std::unique_ptr<fs::File> file_;
  bool memory_backed_;
  const SpaceManager& space_;
  std::atomic<std::uint64_t> size_bytes_ = 0;  ///< read by other threads' saves while one grows the file
  std::unique_ptr<fs::Mapping> mapping_;       // on memory-backed stores
  /// Registration of the mapping; ended before munmap.
  std::shared_ptr<device::MemoryRegistration> memory_registration_;
  std::atomic<unsigned> fill_count_ = 0;  ///< how often the mapping was filled
  MemoryAccess memory_access_{*this};
  bool is_growing_ = false;  ///< taken as written; unmapped then
  std::mutex written_mutex_;
  ByteRanges written_;                                ///< while it grows
  std::atomic<std::uint64_t> new_from_ = UINT64_MAX;  ///< start of storage that was never written; until mark_filled()
  std::unique_ptr<WriteCombiner> combiner_;           // on block storage
  /// Registration on block storage; ended before the seal.
  std::shared_ptr<device::FileRegistration> file_registration_;
};

}  // namespace kedge::store
