// Files of the application's own on their way through one checkpoint, in a directory of this rank's on the store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "format/region_spec.hpp"
#include "fs/file_system.hpp"
#include "store/routed_directories.hpp"

namespace kedge::engine {

/// A file, or everything in a directory: then the name ends with '/'.
struct Route {
  std::string name;
  std::string path;             ///< ends with the name
  std::uint64_t max_bytes = 0;  ///< 0: as much as there is room for

  [[nodiscard]] bool is_directory() const noexcept { return name.ends_with('/'); }
};

/// The routes of one create or open on one rank. All calls are local; add() and begin_directory() are not thread-safe.
class RoutedFiles {
 public:
  RoutedFiles(store::RoutedDirectories& store_directories, fs::FileSystem& file_system, const Log& log)
      : store_directories_(store_directories), file_system_(file_system), log_(log) {}

  /// The route that this name cannot be beside: of the same name, or with one of the two in the other's place. Null if
  /// there is none.
  [[nodiscard]] const Route* find_conflict(std::string_view name) const noexcept;
  /// Makes the directories on the way to it; that of a directory as well. Throws invalid_argument (no name of a region,
  /// or none that a file can have), io, no_space.
  Route add(std::string_view name, std::uint64_t max_bytes);
  /// The next add() goes to a directory of its own, beside what was added before.
  void begin_directory() noexcept { current_.clear(); }

  /// Calls `sink` for each file that was written to a route, once each, and removes it then: what is in a directory by
  /// name, then each directory in it that has nothing in it. Throws not_found, invalid_argument, io, and what `sink`
  /// throws.
  using Sink = std::function<void(const format::RegionSpec&, fs::ByteAccess& from, std::uint64_t bytes)>;
  void copy_into(const Sink& sink) const;

  /// Removes them with all that lies beside them. Never throws: what cannot be removed is logged, and left to the next
  /// start.
  void drop();

 private:
  void take_in_directory(const Route& route, const Sink& sink) const;
  void require_own_directories(const Route& route) const;
  void copy_file_into(const std::string& name, const std::string& path, const Sink& sink) const;
  void log_unrouted_files(const std::string& directory) const;

  store::RoutedDirectories& store_directories_;
  fs::FileSystem& file_system_;
  const Log& log_;
  std::vector<std::string> directories_;
  std::string current_;        ///< of directories_, or empty
  std::vector<Route> routes_;  ///< all routes, of all directories
};

}  // namespace kedge::engine
