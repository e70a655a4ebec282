#include "persist/posix_tier.hpp"

#include <utility>

#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {
namespace {

constexpr std::string_view kItself = ".";  // a tag directory that is looked at as a place of its own

}  // namespace

std::unique_ptr<PosixTier> PosixTier::of_source(std::shared_ptr<fs::FileSystem> file_system, const std::string& path,
                                                Options::Persistent options) {
  std::string prefix = file_system->canonical(path);
  return std::unique_ptr<PosixTier>(
      new PosixTier(std::move(file_system), std::move(prefix), std::move(options), Of::source));
}

std::string PosixTier::path_of(std::string_view name) const {
  return name == kItself ? prefix_ : fs::join(prefix_, name);
}

TagList PosixTier::list() {
  if (of_ == Of::run) return list_tags(*file_system_, prefix_);
  require_trusted_parent(*file_system_, prefix_, options_.trust);
  if (!is_published(std::string(kItself))) return list_tags(*file_system_, prefix_);
  TagList list;
  list.entries.push_back(read(std::string(kItself)));
  return list;
}

TagEntry PosixTier::read(const std::string& name) { return read_tag(*file_system_, prefix_, name); }

bool PosixTier::is_published(const std::string& name) {
  return file_system_->status(fs::join(path_of(name), kManifestFile)).has_value();
}

bool PosixTier::is_own(const TagEntry& entry) {
  const auto directory = file_system_->status(path_of(entry.directory));
  return directory && directory->owner == file_system_->user();
}

void PosixTier::require_trusted(const TagEntry& entry) {
  const std::string directory = path_of(entry.directory);
  persist::require_trusted(*file_system_, directory, options_.trust);
  persist::require_trusted(*file_system_, fs::join(directory, kManifestFile), options_.trust);
}

OpenedContainer PosixTier::open(const std::string& name, const CommitHead& commit, LogicalRank logical_rank) {
  OpenedContainer container = open_container(*file_system_, {path_of(name)}, commit, logical_rank);
  persist::require_trusted(*file_system_, container.path, options_.trust);
  return container;
}

}  // namespace kedge::persist
