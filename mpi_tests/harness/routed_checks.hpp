// What tests of routed files share: content to write, and what of it lies in the stores.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "harness/engine_checks.hpp"

namespace kedge::faults {

/// Bytes that differ by seed, and from one block of a file to the next.
[[nodiscard]] inline std::vector<std::byte> content_of(std::integral auto seed, std::size_t size_bytes) {
  std::vector<std::byte> content(size_bytes);
  const auto begin = static_cast<std::size_t>(seed);
  for (std::size_t i = 0; i < size_bytes; ++i) content[i] = static_cast<std::byte>(i * 7 + i / 4093 + begin);
  return content;
}

/// Paths in the stores that are routed files, or their directories.
[[nodiscard]] inline std::vector<std::string> routed_files(const FaultyDisk& disk) {
  std::vector<std::string> files;
  for (const auto& [path, entry] : disk.snapshot()) {
    if (path.find("/routed-") != std::string::npos) files.push_back(path);
  }
  return files;
}

/// The only engine of a job of one rank.
inline void on_one_rank(SimulatedJob& job, const std::function<void(Engine&)>& body) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    body(engine);
  }));
}

}  // namespace kedge::faults
