#include "counting_file_system.hpp"

#include <cstddef>
#include <span>

namespace kedge_bench {
namespace {

using kedge::fs::File;
using kedge::fs::Mapping;
using Count = CountingFileSystem::Count;

class CountingMapping final : public Mapping {
 public:
  CountingMapping(std::unique_ptr<Mapping> inner, Count count) : inner_(std::move(inner)), count_(std::move(count)) {}

  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    return inner_->write_with_crc(offset, bytes, crc);
  }
  [[nodiscard]] std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes,
                                            std::uint32_t crc) override {
    *count_ += bytes.size();
    return inner_->read_with_crc(offset, bytes, crc);
  }
  [[nodiscard]] std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    *count_ += length;
    return inner_->checksum(offset, length, crc);
  }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept override {
    const auto bytes = inner_->bytes();
    *count_ += bytes.size();
    return bytes;
  }
  [[nodiscard]] std::span<std::byte> memory() noexcept override { return inner_->memory(); }
  bool prefault() noexcept override { return inner_->prefault(); }

 private:
  std::unique_ptr<Mapping> inner_;
  Count count_;
};

/// Counts read_with_crc and checksum; read() is not overridden and ends in read_with_crc, so that it is counted once.
class CountingFile final : public kedge::faults::ForwardingFile {
 public:
  CountingFile(std::unique_ptr<File> inner, Count count) : ForwardingFile(std::move(inner)), count_(std::move(count)) {}

  [[nodiscard]] std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes,
                                            std::uint32_t crc) override {
    *count_ += bytes.size();
    return ForwardingFile::read_with_crc(offset, bytes, crc);
  }
  [[nodiscard]] std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    *count_ += length;
    return ForwardingFile::checksum(offset, length, crc);
  }
  [[nodiscard]] std::unique_ptr<Mapping> map(std::uint64_t size_bytes) override {
    return std::make_unique<CountingMapping>(ForwardingFile::map(size_bytes), count_);
  }

 private:
  Count count_;
};

std::unique_ptr<File> counted(std::unique_ptr<File> file, const Count& count) {
  if (!file) return nullptr;
  return std::make_unique<CountingFile>(std::move(file), count);
}

}  // namespace

std::unique_ptr<File> CountingFileSystem::open(const std::string& path, kedge::fs::Access access) {
  return counted(inner().open(path, access), bytes_read_);
}

std::unique_ptr<File> CountingFileSystem::create(const std::string& path, std::uint32_t mode) {
  return counted(inner().create(path, mode), bytes_read_);
}

}  // namespace kedge_bench
