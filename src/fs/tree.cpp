#include "fs/tree.hpp"

#include <algorithm>
#include <optional>

#include "base/attempt.hpp"

namespace kedge::fs {
namespace {

using Kind = FileStatus::Kind;

void add_files_below(FileSystem& file_system, const std::string& directory, const std::string& shown,
                     std::vector<TreeFile>& files) {
  for (const std::string& name : file_system.list(directory)) {
    const std::string path = join(directory, name);
    const auto status = file_system.status(path);
    if (!status) continue;  // removed since it was listed
    if (status->kind == Kind::directory) add_files_below(file_system, path, shown + name + "/", files);
    else files.push_back({shown + name, *status});
  }
}

void add_empty_below(FileSystem& file_system, const std::string& directory, const std::string& shown,
                     std::vector<std::string>& names) {
  const std::vector<std::string> here = file_system.list(directory);
  if (here.empty() && !shown.empty()) names.push_back(shown);
  for (const std::string& name : here) {
    const std::string path = join(directory, name);
    const auto status = file_system.status(path);
    if (!status || status->kind != Kind::directory) continue;
    add_empty_below(file_system, path, shown.empty() ? name : join(shown, name), names);
  }
}

/// Returns false if `should_stop` ended it early.
bool remove_all_of(FileSystem& file_system, const std::string& path, const ShouldStop& should_stop,
                   std::optional<Failure>& first) {
  const auto note = [&](std::optional<Failure> failure) {
    if (failure && !first) first = std::move(failure);
  };
  std::vector<std::string> names;
  note(attempt([&] {
    const auto status = file_system.status(path);
    if (status && status->kind == Kind::directory) names = file_system.list(path);
  }));
  for (const std::string& name : names) {
    if (!remove_all_of(file_system, join(path, name), should_stop, first)) return false;
  }
  if (should_stop && should_stop()) return false;
  note(attempt([&] { file_system.remove(path); }));
  return true;
}

}  // namespace

std::vector<TreeFile> files_below(FileSystem& file_system, const std::string& directory) {
  std::vector<TreeFile> files;
  add_files_below(file_system, directory, "", files);
  std::ranges::sort(files, {}, &TreeFile::name);
  return files;
}

std::vector<std::string> empty_directories_below(FileSystem& file_system, const std::string& directory) {
  std::vector<std::string> names;
  add_empty_below(file_system, directory, "", names);
  std::ranges::sort(names);
  return names;
}

bool remove_tree(FileSystem& file_system, const std::string& path, const ShouldStop& should_stop) {
  std::optional<Failure> first;
  const bool is_done = remove_all_of(file_system, path, should_stop, first);
  if (first) throw Error(*std::move(first));
  return is_done;
}

void make_directories(FileSystem& file_system, const std::string& path, std::uint32_t mode) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (!parent.empty() && parent.back() != '/' && !file_system.status(parent)) {
      file_system.make_directory(parent, mode);
    }
  }
  if (!file_system.status(path)) file_system.make_directory(path, mode);
}

bool is_writable_by_all(const FileStatus& status) noexcept {
  return status.kind == Kind::directory && (status.mode & kOthersWrite) != 0 && (status.mode & kSticky) == 0;
}

void make_parents(FileSystem& file_system, const std::string& base, std::string_view name, std::uint32_t mode) {
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
    const std::string path = join(base, name.substr(0, slash));
    file_system.make_directory(path, mode);
    const auto status = file_system.status(path);
    if (status && status->kind == Kind::directory) continue;
    refuse(ErrorCode::io, "not a directory, and a directory is needed here; remove it", path);
  }
}

}  // namespace kedge::fs
