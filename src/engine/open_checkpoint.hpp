// The checkpoint that is open for reading.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/routed_files.hpp"
#include "engine/unverified_containers.hpp"
#include "kedge/error.hpp"
#include "persist/prefix_storage.hpp"
#include "recovery/holding.hpp"

namespace kedge::engine {

/// Whether the file was there a moment ago and is gone. An error of the system is another matter.
[[nodiscard]] bool is_lost(const Failure& failure);

struct OpenCheckpoint {
  OpenCheckpoint(store::RoutedDirectories& directories, fs::FileSystem& file_system, const Log& log)
      : routed(directories, file_system, log) {}

  /// Containers that this process reads, by logical rank: its own, or some of another number of ranks.
  std::vector<recovery::Holding> holdings;
  persist::PrefixReader* prefix = nullptr;                      ///< where other processes' holdings may be read, too
  std::string directory;                                        ///< of the commit there
  std::unique_ptr<persist::PrefixReader> source_prefix_reader;  ///< of a Source; else null
  std::string source_prefix;                                    ///< of a Source, as it was given
  Id128 parent_before;                             ///< of a Source: the parent of the next commit before it
  std::unique_ptr<UnverifiedContainers> unproven;  ///< null: their bytes were verified, or need not be
  RoutedFiles routed;
  std::optional<Failure> first_failure;
  std::optional<std::string> unread;  ///< regions that a State did not load, if there are any

  [[nodiscard]] bool is_source() const noexcept { return source_prefix_reader != nullptr; }
  /// Local. A mapped file that another process removed or truncated is noticed before it is read. Throws corrupt, io.
  void require_present() const;
};

}  // namespace kedge::engine
