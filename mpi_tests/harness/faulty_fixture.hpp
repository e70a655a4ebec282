// What the tests of the faulty disk share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/faulty_file_system.hpp"
#include "kedge/error.hpp"

namespace kedge::faults {

inline constexpr std::size_t kPiece = 4096;
inline constexpr std::size_t kPage = 4096;

inline std::vector<std::byte> bytes_of(std::size_t size, int value) {
  return std::vector(size, static_cast<std::byte>(value));
}

template <class Action>
bool dies(Action&& action) {
  try {
    action();
  } catch (const testing::SimulatedDeath&) {
    return true;
  }
  return false;
}

template <class Action>
std::optional<Failure> failure_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.failure();
  }
  return std::nullopt;
}

class Faulty : public testing::Test {
 protected:
  static DiskOptions options() {
    DiskOptions result;
    result.piece_bytes = kPiece;
    return result;
  }
  void SetUp() override { disk.make_directories("/d"); }
  void write(const std::string& path, std::span<const std::byte> bytes) {
    auto file = system->create(path);
    if (!file) file = system->open(path, fs::Access::read_write);
    file->write_with_crc(0, bytes, 0);
  }

  FaultyDisk disk{options()};
  std::shared_ptr<fs::FileSystem> system = disk.view(0);
};

}  // namespace kedge::faults
