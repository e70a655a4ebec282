// What keeps a file that is there from being used: permissions and errors, when it is opened or from some byte on.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "harness/faulty_file_system.hpp"

namespace kedge::faults {

struct Obstacle {
  enum class From : std::uint8_t { writing, opening, first_byte, past_header, end };
  std::string name;  ///< words with '_' between them
  From from = From::opening;
  std::function<void(FaultyDisk&, const std::string& path)> put;

  /// For the names of tests.
  friend void PrintTo(const Obstacle& obstacle, std::ostream* stream) { *stream << obstacle.name; }
};

inline void give_mode(FaultyDisk& disk, const std::string& path, std::uint32_t mode) {
  auto status = disk.snapshot().at(path).status;
  status.mode = mode;
  disk.plant(path, status);
}

[[nodiscard]] inline const std::vector<Obstacle>& obstacles() {
  using From = Obstacle::From;
  const auto mode = [](std::uint32_t bits) {
    return [bits](FaultyDisk& disk, const std::string& path) { give_mode(disk, path, bits); };
  };
  const auto unreadable = [](std::uint64_t from, int error) {
    return [from, error](FaultyDisk& disk, const std::string& path) { disk.make_unreadable(path, from, error); };
  };
  static const std::vector<Obstacle> all = {
      {"can_only_be_read", From::writing, mode(0400)},
      {"no_permission", From::opening, mode(0)},
      {"cannot_be_opened", From::opening, [](FaultyDisk& disk, const std::string& path) { disk.refuse_open(path); }},
      {"no_byte_can_be_read", From::first_byte, unreadable(0, EIO)},
      {"no_byte_may_be_read", From::first_byte, unreadable(0, EACCES)},
      {"nothing_past_the_header_can_be_read", From::past_header, unreadable(4096, EIO)},
      {"nothing_past_the_header_may_be_read", From::past_header, unreadable(4096, EACCES)},
      {"the_end_cannot_be_read", From::end,
       [](FaultyDisk& disk, const std::string& path) { disk.make_unreadable(path, disk.read_all(path).size() - 1); }},
  };
  return all;
}

}  // namespace kedge::faults
