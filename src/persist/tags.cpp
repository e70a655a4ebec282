#include "persist/tags.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/tag_catalog.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::persist {
namespace {

using Kind = fs::FileStatus::Kind;

// A catalog's statement, and whose it is.
struct CatalogEntry {
  TagEntry entry;
  std::uint32_t owner = 0;
};
using CatalogIndex = std::unordered_map<std::string, CatalogEntry>;

bool is_kind(const std::optional<fs::FileStatus>& status, Kind kind) { return status && status->kind == kind; }

// Only a cache: what cannot be read, is a link or can be written by others counts for nothing.
void add_catalog_entries(fs::FileSystem& file_system, const std::string& records, const std::string& run,
                         CatalogIndex& claims) {
  const std::string directory = fs::join(records, run);
  const auto directory_status = file_system.status(directory);
  const auto status = file_system.status(fs::join(directory, kTagCatalogFile));
  if (!is_kind(directory_status, Kind::directory) || !is_kind(status, Kind::file)) return;
  if (((directory_status->mode | status->mode) & fs::kGroupOrOthersWrite) != 0 ||
      directory_status->owner != status->owner)
    return;
  for (TagEntry& entry : TagCatalog(file_system, directory).read()) {
    if (entry.run != run) continue;  // nobody speaks for another run
    std::string name = entry.directory;
    claims.insert_or_assign(std::move(name), CatalogEntry{std::move(entry), status->owner});
  }
}

CatalogIndex read_catalogs(fs::FileSystem& file_system, const std::string& prefix) {
  CatalogIndex claims;
  const std::string records = records_directory(prefix);
  static_cast<void>(attempt([&] {
    if (!is_kind(file_system.status(records), Kind::directory)) return;
    for (const std::string& run : file_system.list(records)) {
      static_cast<void>(attempt([&] { add_catalog_entries(file_system, records, run, claims); }));
    }
  }));
  return claims;
}

void require_directory(fs::FileSystem& file_system, const std::string& path) {
  const auto status = file_system.status(path);
  if (!status) refuse(ErrorCode::not_found, "there is no such tag directory", path);
  if (status->kind == Kind::link)
    refuse(ErrorCode::io, "not a tag directory: it is a symbolic link, which is not followed", path);
  if (status->kind != Kind::directory)
    refuse(ErrorCode::io, "not a directory, although it is named like a tag directory", path);
}

// The manifest's status; throws not_found if there is none.
fs::FileStatus require_manifest(fs::FileSystem& file_system, const std::string& directory) {
  const auto status = file_system.status(fs::join(directory, kManifestFile));
  if (!status) {
    refuse(ErrorCode::not_found, compose("no {}: a flush or removal is in progress or was interrupted", kManifestFile),
           directory);
  }
  if (status->kind == Kind::link) {
    refuse(ErrorCode::io, compose("{} is a symbolic link, which is not followed", kManifestFile), directory);
  }
  if (status->kind != Kind::file) refuse(ErrorCode::io, compose("{} is not a regular file", kManifestFile), directory);
  return *status;
}

bool is_pinned(fs::FileSystem& file_system, const std::string& directory) {
  return is_kind(file_system.status(fs::join(directory, kPinFile)), Kind::file);
}

TagEntry read_manifest(fs::FileSystem& file_system, const std::string& prefix, const std::string& directory) {
  const std::string path = fs::join(fs::join(prefix, directory), kManifestFile);
  const auto file = file_system.open(path, fs::Access::read);
  const format::ManifestReader reader(*file, file->status().size_bytes, path);
  const format::ManifestHead& head = reader.head();
  TagEntry entry;
  entry.directory = directory;
  entry.commit = head.commit;
  entry.run = head.run;
  entry.total_bytes = head.total_bytes;
  // A copy may be called anything that does not look like another tag's directory.
  if (parse_tag_directory_name(directory) && directory != tag_directory_name(entry.commit)) {
    refuse(ErrorCode::corrupt,
           compose("this is the manifest of {}, which was copied here by mistake, or the directory was renamed",
                   tag_directory_name(entry.commit)),
           path);
  }
  return entry;
}

// Finds one of the list's directories; by the catalog if it knows it, else by the manifest.
TagEntry look_up(fs::FileSystem& file_system, const std::string& prefix, const std::string& directory,
                 const CatalogIndex& claims) {
  const std::string path = fs::join(prefix, directory);
  require_directory(file_system, path);
  const fs::FileStatus manifest = require_manifest(file_system, path);
  const auto claim = claims.find(directory);
  const bool known = claim != claims.end() && claim->second.owner == manifest.owner &&
                     directory == tag_directory_name(claim->second.entry.commit);
  TagEntry entry = known ? claim->second.entry : read_manifest(file_system, prefix, directory);
  entry.pinned = is_pinned(file_system, path);
  return entry;
}

UnusableTag make_unusable_tag(const std::string& directory, const Failure& failure) {
  UnusableTag result;
  result.directory = directory;
  result.has_manifest = failure.code != ErrorCode::not_found;
  result.reason = failure.message;
  result.code = failure.code;
  return result;
}

}  // namespace

format::ManifestHead manifest_head_of(const TagEntry& entry) {
  format::ManifestHead head;
  head.commit = entry.commit;
  head.total_bytes = entry.total_bytes;
  head.run = entry.run;
  return head;
}

TagList list_tags(fs::FileSystem& file_system, const std::string& prefix) {
  TagList list;
  const std::vector<std::string> names = file_system.list(prefix);
  const CatalogIndex claims = read_catalogs(file_system, prefix);
  for (const std::string& directory : names) {
    if (!parse_tag_directory_name(directory)) continue;
    const auto failure = attempt([&] { list.entries.push_back(look_up(file_system, prefix, directory, claims)); });
    if (failure) list.unusable_tags.push_back(make_unusable_tag(directory, *failure));
  }
  std::ranges::sort(list.entries, is_newer, &TagEntry::commit);
  return list;
}

TagEntry read_tag(fs::FileSystem& file_system, const std::string& prefix, const std::string& directory) {
  const std::string path = fs::join(prefix, directory);
  require_directory(file_system, path);
  static_cast<void>(require_manifest(file_system, path));
  TagEntry entry = read_manifest(file_system, prefix, directory);
  entry.pinned = is_pinned(file_system, path);
  return entry;
}

}  // namespace kedge::persist
