// How many bytes of files are read: a file system in front of another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "harness/forwarding_file_system.hpp"

namespace kedge_bench {

/// Counts what is read of the files that are opened and created through it, by calls and by mappings. Whoever asks
/// where a mapping's bytes lie may read them all, so that counts as reading them once.
class CountingFileSystem final : public kedge::faults::ForwardingFileSystem {
 public:
  explicit CountingFileSystem(std::shared_ptr<kedge::fs::FileSystem> inner) : ForwardingFileSystem(std::move(inner)) {}

  [[nodiscard]] std::unique_ptr<kedge::fs::File> open(const std::string& path, kedge::fs::Access access) override;
  [[nodiscard]] std::unique_ptr<kedge::fs::File> create(const std::string& path, std::uint32_t mode) override;

  /// Since the last call. Thread-safe.
  [[nodiscard]] std::uint64_t take_bytes_read() noexcept { return bytes_read_->exchange(0); }

  using Count = std::shared_ptr<std::atomic<std::uint64_t>>;

 private:
  Count bytes_read_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace kedge_bench
