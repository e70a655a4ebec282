// A file system that measures what it is told, and counts the files that were asked to write past the page cache.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "harness/forwarding_file_system.hpp"
#include "kedge/error.hpp"

namespace kedge::faults {

/// A file that can be written directly, as it says.
class DirectFile final : public ForwardingFile {
 public:
  DirectFile(std::unique_ptr<fs::File> inner, int& direct) : ForwardingFile(std::move(inner)), direct_(direct) {}
  bool enable_direct_writes() override {
    ++direct_;
    return true;
  }

 private:
  int& direct_;
};

/// Measures what it is told.
class Probed final : public ForwardingFileSystem {
 public:
  Probed(std::shared_ptr<fs::FileSystem> inner, fs::WriteProbe probe)
      : ForwardingFileSystem(std::move(inner)), probe_(std::move(probe)) {}
  int probes = 0;
  fs::ProbeTarget probed;  ///< where, the last time
  int direct = 0;          ///< files that were asked to write directly

  [[nodiscard]] fs::WriteProbe probe_writes(const fs::ProbeTarget& place) override {
    ++probes;
    probed = place;
    if (probe_.refusal == "throw") throw Error(Failure{ErrorCode::io, "the device is gone", -1, place.directory, 0});
    return probe_;
  }
  [[nodiscard]] std::unique_ptr<fs::File> open(const std::string& path, fs::Access access) override {
    return wrapped(inner().open(path, access));
  }
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    return wrapped(inner().create(path, mode));
  }

 private:
  [[nodiscard]] std::unique_ptr<fs::File> wrapped(std::unique_ptr<fs::File> file) {
    if (!file) return nullptr;
    return std::make_unique<DirectFile>(std::move(file), direct);
  }

  fs::WriteProbe probe_;
};

}  // namespace kedge::faults
