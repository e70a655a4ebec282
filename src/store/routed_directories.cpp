#include "store/routed_directories.hpp"

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "fs/tree.hpp"

namespace kedge::store {

std::string RoutedDirectories::make_directory() {
  fs::FileSystem& file_system = directory_.file_system();
  while (true) {
    std::string path = fs::join(directory_.path(), compose("{}{}.{}", kRoutedPrefix, own_rank_.value, count_++));
    if (file_system.status(path)) continue;
    directory_.run_in_directory([&] { file_system.make_directory(path, 0700); });
    return path;
  }
}

void RoutedDirectories::remove_leftovers() const {
  fs::FileSystem& file_system = directory_.file_system();
  const std::string own = compose("{}{}.", kRoutedPrefix, own_rank_.value);
  for (const std::string& name : file_system.list(directory_.path())) {
    // A directory that cannot be removed must not prevent a start; make_directory() picks another number.
    if (name.starts_with(own)) (void)attempt([&] { fs::remove_tree(file_system, fs::join(directory_.path(), name)); });
  }
}

/// Skips files that vanish: the application writes them meanwhile, and other ranks remove theirs.
std::uint64_t RoutedDirectories::used_bytes() const {
  fs::FileSystem& file_system = directory_.file_system();
  std::uint64_t bytes = 0;
  for (const std::string& name : file_system.list(directory_.path())) {
    if (!name.starts_with(kRoutedPrefix)) continue;
    (void)attempt([&] {
      for (const fs::TreeFile& file : fs::files_below(file_system, fs::join(directory_.path(), name))) {
        bytes += file.status.allocated_bytes;
      }
    });
  }
  return bytes;
}

}  // namespace kedge::store
