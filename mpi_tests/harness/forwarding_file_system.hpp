// A file system in front of another: a test overrides what it wants to see or to disturb.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::faults {

class ForwardingFile : public fs::File {
 public:
  explicit ForwardingFile(std::unique_ptr<fs::File> inner) : inner_(std::move(inner)) {}

  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    return inner_->write_with_crc(offset, bytes, crc);
  }
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    return inner_->read_with_crc(offset, bytes, crc);
  }
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    return inner_->checksum(offset, length, crc);
  }
  [[nodiscard]] const std::string& path() const noexcept override { return inner_->path(); }
  [[nodiscard]] fs::FileStatus status() override { return inner_->status(); }
  std::uint64_t reserve(std::uint64_t size_bytes) override { return inner_->reserve(size_bytes); }
  void truncate(std::uint64_t size_bytes) override { inner_->truncate(size_bytes); }
  void sync() override { inner_->sync(); }
  [[nodiscard]] std::unique_ptr<fs::Mapping> map(std::uint64_t size_bytes) override { return inner_->map(size_bytes); }

 private:
  std::unique_ptr<fs::File> inner_;
};

class ForwardingFileSystem : public fs::FileSystem {
 public:
  explicit ForwardingFileSystem(std::shared_ptr<fs::FileSystem> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] std::unique_ptr<fs::File> open(const std::string& path, fs::Access access) override {
    return inner_->open(path, access);
  }
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    return inner_->create(path, mode);
  }
  void append(const std::string& path, std::span<const std::byte> bytes, std::uint32_t mode) override {
    inner_->append(path, bytes, mode);
  }
  void remove(const std::string& path) override { inner_->remove(path); }
  void rename(const std::string& from, const std::string& to) override { inner_->rename(from, to); }
  void make_directory(const std::string& path, std::uint32_t mode) override { inner_->make_directory(path, mode); }
  [[nodiscard]] std::vector<std::string> list(const std::string& path) override { return inner_->list(path); }
  [[nodiscard]] std::optional<fs::FileStatus> status(const std::string& path) override { return inner_->status(path); }
  void sync_directory(const std::string& path) override { inner_->sync_directory(path); }
  [[nodiscard]] fs::Space space(const std::string& path) override { return inner_->space(path); }
  [[nodiscard]] std::string canonical(const std::string& path) override { return inner_->canonical(path); }
  [[nodiscard]] std::unique_ptr<fs::Lock> try_lock(const std::string& path, std::string_view holder) override {
    return inner_->try_lock(path, holder);
  }
  [[nodiscard]] std::optional<std::string> lock_holder(const std::string& path) override {
    return inner_->lock_holder(path);
  }
  [[nodiscard]] bool holds_lock(const std::string& path) override { return inner_->holds_lock(path); }
  [[nodiscard]] std::uint32_t user() const noexcept override { return inner_->user(); }
  [[nodiscard]] bool in_group(std::uint32_t group) const override { return inner_->in_group(group); }

 protected:
  [[nodiscard]] fs::FileSystem& inner() const noexcept { return *inner_; }

 private:
  std::shared_ptr<fs::FileSystem> inner_;
};

}  // namespace kedge::faults
