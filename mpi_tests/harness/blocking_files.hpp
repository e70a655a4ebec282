// Files that can be held up when they are made, read whole or removed, to look at what happens meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "harness/forwarding_file_system.hpp"

namespace kedge::faults {

/// Functions that are called with a path before something is done with it; empty: nothing.
struct BlockedCalls {
  std::function<void(const std::string& path)> making;
  std::function<void(const std::string& path)> reading;  ///< each piece of which the checksum is taken
  std::function<void(const std::string& path)> removing;
  std::function<void(const std::string& path)> appending;
};

class BlockingFile final : public ForwardingFile {
 public:
  BlockingFile(std::unique_ptr<fs::File> inner, const BlockedCalls& holds)
      : ForwardingFile(std::move(inner)), holds_(holds) {}
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    if (holds_.reading) holds_.reading(path());
    return ForwardingFile::checksum(offset, length, crc);
  }

 private:
  const BlockedCalls& holds_;
};

/// `holds` must outlive it and its files.
class BlockingFiles final : public ForwardingFileSystem {
 public:
  BlockingFiles(std::shared_ptr<fs::FileSystem> inner, const BlockedCalls& holds)
      : ForwardingFileSystem(std::move(inner)), holds_(holds) {}
  [[nodiscard]] std::unique_ptr<fs::File> open(const std::string& path, fs::Access access) override {
    return held(inner().open(path, access));
  }
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    if (holds_.making) holds_.making(path);
    return held(inner().create(path, mode));
  }
  void append(const std::string& path, std::span<const std::byte> bytes, std::uint32_t mode) override {
    if (holds_.appending) holds_.appending(path);
    inner().append(path, bytes, mode);
  }
  void remove(const std::string& path) override {
    if (holds_.removing) holds_.removing(path);
    inner().remove(path);
  }

 private:
  [[nodiscard]] std::unique_ptr<fs::File> held(std::unique_ptr<fs::File> file) const {
    return file ? std::make_unique<BlockingFile>(std::move(file), holds_) : nullptr;
  }

  const BlockedCalls& holds_;
};

}  // namespace kedge::faults
