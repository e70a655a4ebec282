#include "persist/plain_directory.hpp"

#include "persist/new_file.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {
namespace {

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// The directories for the directories of ranks.
template <class Visit>
void for_each_part(const std::string& tag_directory, std::uint32_t world_size, Visit&& visit) {
  for (std::uint64_t rank = 0; rank < world_size; rank += kContainersPerDirectory) {
    visit(fs::join(tag_directory, parent_of(plain_directory(LogicalRank{static_cast<std::uint32_t>(rank)}))));
  }
}

}  // namespace

bool PlainDirectory::is_directory(const std::string& path) const {
  const auto status = file_system_.status(path);
  return status && status->kind == fs::FileStatus::Kind::directory;
}

void PlainDirectory::make_directory(const std::string& path) const {
  file_system_.make_directory(path, parse_mode(options_.mode));
  require_trusted(file_system_, path, options_.trust);
}

void PlainDirectory::make_directories(std::uint32_t world_size) const {
  make_directory(fs::join(tag_directory_, kPlainDirectory));
  for_each_part(tag_directory_, world_size, [&](const std::string& part) { make_directory(part); });
}

void PlainDirectory::write_file(LogicalRank logical_rank, const std::string& name,
                                const std::function<void(fs::ByteAccess& to)>& write) const {
  const std::string mine = fs::join(tag_directory_, plain_directory(logical_rank));
  make_directory(mine);
  fs::make_parents(file_system_, mine, name, parse_mode(options_.mode));
  const std::string path = fs::join(mine, name);
  if (!name.ends_with('/')) {
    file_system_.remove(path);  // of an attempt that failed
    const auto file = file_system_.create(path, parse_mode(options_.mode) & kFileBits);
    if (!file) throw_name_taken(path);
    write(*file);
    file->sync();
  }
  for (std::string directory = parent_of(path); directory.size() >= mine.size(); directory = parent_of(directory)) {
    file_system_.sync_directory(directory);
  }
}

void PlainDirectory::sync_directories(std::uint32_t world_size) const {
  const std::string files = fs::join(tag_directory_, kPlainDirectory);
  if (!is_directory(files)) return;
  for_each_part(tag_directory_, world_size, [&](const std::string& part) { file_system_.sync_directory(part); });
  file_system_.sync_directory(files);
}

bool PlainDirectory::remove_files_of_rank(LogicalRank logical_rank, const fs::ShouldStop& should_stop) const {
  const std::string mine = fs::join(tag_directory_, plain_directory(logical_rank));
  if (!is_directory(fs::join(tag_directory_, kPlainDirectory)) || !is_directory(parent_of(mine))) return true;
  return !is_directory(mine) || fs::remove_tree(file_system_, mine, should_stop);
}

void PlainDirectory::remove_all() const {
  const std::string files = fs::join(tag_directory_, kPlainDirectory);
  if (!is_directory(files)) return;
  for (const std::string& part : file_system_.list(files)) {
    const std::string directory = fs::join(files, part);
    if (!is_directory(directory)) continue;
    for (const std::string& name : file_system_.list(directory)) {
      const std::string ranks = fs::join(directory, name);
      if (rank_of_plain_directory(name) && is_directory(ranks)) fs::remove_tree(file_system_, ranks);
    }
    if (file_system_.list(directory).empty()) file_system_.remove(directory);
  }
  if (file_system_.list(files).empty()) file_system_.remove(files);
}

}  // namespace kedge::persist
