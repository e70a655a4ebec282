#include "store/run_directory.hpp"

#include <algorithm>

namespace kedge::store {

std::string RunDirectory::path_of(const FileName& name) const { return fs::join(location_.directory, to_string(name)); }

std::vector<FileName> RunDirectory::list_files() const {
  std::vector<FileName> names;
  for (const std::string& name : run_in_directory([&] { return file_system_->list(location_.directory); })) {
    if (const auto parsed = parse_file_name(name)) names.push_back(*parsed);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::uint64_t RunDirectory::stored_bytes(const FileName& name) const {
  const auto status = file_system_->status(path_of(name));
  return status ? std::min(status->size_bytes, status->allocated_bytes) : 0;
}

bool RunDirectory::has_holes(const FileName& name) const {
  const auto status = file_system_->status(path_of(name));
  return status && status->allocated_bytes < status->size_bytes;
}

bool RunDirectory::is_foreign(const FileName& name) const {
  const auto status = file_system_->status(path_of(name));
  return status && (status->owner != file_system_->user() || status->kind != fs::FileStatus::Kind::file);
}

void RunDirectory::throw_if_removed() const {
  if (file_system_->status(location_.directory)) return;
  throw Error(Failure{ErrorCode::io,
                      "another process removed the directory of the node-local store; the next create recreates it", -1,
                      location_.directory, 0});
}

void RunDirectory::sync_names() const {
  if (durable_) run_in_directory([&] { file_system_->sync_directory(location_.directory); });
}

}  // namespace kedge::store
