#include "persist/tags.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "format/master.hpp"
#include "persist/tag_catalog.hpp"
#include "persist/tag_folder.hpp"

namespace kedge::persist {
namespace {

using Kind = fs::FileStatus::Kind;

constexpr std::uint32_t kGroupOrOthersWrite = 022;
constexpr std::string_view kRecordsFolder = ".kedge";

// What a catalog says, and whose it is.
struct Claim {
  TagEntry entry;
  std::uint32_t owner = 0;
};
using Claims = std::unordered_map<std::string, Claim>;

bool is_kind(const std::optional<fs::FileStatus>& status, Kind kind) { return status && status->kind == kind; }

// Only a cache: what cannot be read, is a link or can be written by others counts for nothing.
void add_claims(fs::FileSystem& file_system, const std::string& records, const std::string& run, Claims& claims) {
  const std::string folder = fs::join(records, run);
  const auto folder_status = file_system.status(folder);
  const auto status = file_system.status(fs::join(folder, kTagCatalogFile));
  if (!is_kind(folder_status, Kind::directory) || !is_kind(status, Kind::file)) return;
  if (((folder_status->mode | status->mode) & kGroupOrOthersWrite) != 0 || folder_status->owner != status->owner)
    return;
  for (TagEntry& entry : TagCatalog(file_system, folder).read()) {
    if (entry.run != run) continue;  // nobody speaks for another run
    std::string name = entry.folder;
    claims.insert_or_assign(std::move(name), Claim{std::move(entry), status->owner});
  }
}

Claims read_claims(fs::FileSystem& file_system, const std::string& prefix) {
  Claims claims;
  const std::string records = fs::join(prefix, kRecordsFolder);
  static_cast<void>(attempt([&] {
    if (!is_kind(file_system.status(records), Kind::directory)) return;
    for (const std::string& run : file_system.list(records)) {
      static_cast<void>(attempt([&] { add_claims(file_system, records, run, claims); }));
    }
  }));
  return claims;
}

std::string folder_of(const TagEntry& entry) { return folder_name(entry.tag, entry.generation, entry.commit_id); }

[[noreturn]] void refuse(ErrorCode code, std::string message, const std::string& path) {
  throw Error(Failure{code, std::move(message), -1, path, 0});
}

void require_folder(fs::FileSystem& file_system, const std::string& path) {
  const auto status = file_system.status(path);
  if (!status) refuse(ErrorCode::not_found, "there is no such tag folder", path);
  if (status->kind == Kind::link)
    refuse(ErrorCode::io, "a symbolic link is in a tag folder's place; it is not followed", path);
  if (status->kind != Kind::directory) refuse(ErrorCode::io, "something else is in a tag folder's place", path);
}

// The master's status; throws not_found if there is none.
fs::FileStatus require_master(fs::FileSystem& file_system, const std::string& folder) {
  const auto status = file_system.status(fs::join(folder, kMasterFile));
  if (!status) {
    refuse(ErrorCode::not_found, compose("no {}: a flush or removal is under way or was cut short", kMasterFile),
           folder);
  }
  if (status->kind == Kind::link) {
    refuse(ErrorCode::io, compose("{} is a symbolic link, which is not followed", kMasterFile), folder);
  }
  if (status->kind != Kind::file) refuse(ErrorCode::io, compose("{} is no file", kMasterFile), folder);
  return *status;
}

bool is_pinned(fs::FileSystem& file_system, const std::string& folder) {
  return is_kind(file_system.status(fs::join(folder, kPinFile)), Kind::file);
}

TagEntry read_master(fs::FileSystem& file_system, const std::string& prefix, const std::string& folder) {
  const std::string path = fs::join(fs::join(prefix, folder), kMasterFile);
  const auto file = file_system.open(path, fs::Access::read);
  const format::MasterReader reader(*file, file->status().size_bytes, path);
  const format::MasterHead& head = reader.head();
  TagEntry entry;
  entry.folder = folder;
  entry.tag = head.tag;
  entry.generation = head.generation;
  entry.commit_id = head.commit_id;
  entry.parent_commit_id = head.parent_commit_id;
  entry.run_id = head.run_id;
  entry.run = head.run;
  entry.incarnation = head.incarnation;
  entry.world_size = head.world_size;
  entry.time_ns = head.time_ns;
  entry.total_bytes = head.total_bytes;
  // A copy may be called anything that does not look like another tag's folder.
  if (parse_folder_name(folder) && folder != folder_of(entry)) {
    refuse(ErrorCode::corrupt,
           compose("this is the master of {}; it was put here by mistake, or the folder was renamed", folder_of(entry)),
           path);
  }
  return entry;
}

// One of the list's folders; by the catalog if it knows it, else by the master.
TagEntry look_up(fs::FileSystem& file_system, const std::string& prefix, const std::string& folder,
                 const Claims& claims) {
  const std::string path = fs::join(prefix, folder);
  require_folder(file_system, path);
  const fs::FileStatus master = require_master(file_system, path);
  const auto claim = claims.find(folder);
  const bool known =
      claim != claims.end() && claim->second.owner == master.owner && folder == folder_of(claim->second.entry);
  TagEntry entry = known ? claim->second.entry : read_master(file_system, prefix, folder);
  entry.pinned = is_pinned(file_system, path);
  return entry;
}

Unusable unusable(const std::string& folder, const Failure& failure) {
  Unusable result;
  result.folder = folder;
  result.committed = failure.code != ErrorCode::not_found;
  result.reason = failure.message;
  result.code = failure.code;
  return result;
}

}  // namespace

format::MasterHead head_of(const TagEntry& entry) {
  format::MasterHead head;
  head.run_id = entry.run_id;
  head.commit_id = entry.commit_id;
  head.parent_commit_id = entry.parent_commit_id;
  head.generation = entry.generation;
  head.incarnation = entry.incarnation;
  head.world_size = entry.world_size;
  head.time_ns = entry.time_ns;
  head.total_bytes = entry.total_bytes;
  head.tag = entry.tag;
  head.run = entry.run;
  return head;
}

TagList list_tags(fs::FileSystem& file_system, const std::string& prefix) {
  TagList list;
  const std::vector<std::string> names = file_system.list(prefix);
  const Claims claims = read_claims(file_system, prefix);
  for (const std::string& folder : names) {
    if (!parse_folder_name(folder)) continue;
    const auto failure = attempt([&] { list.entries.push_back(look_up(file_system, prefix, folder, claims)); });
    if (failure) list.unusable.push_back(unusable(folder, *failure));
  }
  std::sort(list.entries.begin(), list.entries.end(), [](const TagEntry& a, const TagEntry& b) {
    return std::tie(a.generation, a.commit_id) > std::tie(b.generation, b.commit_id);
  });
  return list;
}

TagEntry read_tag(fs::FileSystem& file_system, const std::string& prefix, const std::string& folder) {
  const std::string path = fs::join(prefix, folder);
  require_folder(file_system, path);
  static_cast<void>(require_master(file_system, path));
  TagEntry entry = read_master(file_system, prefix, folder);
  entry.pinned = is_pinned(file_system, path);
  return entry;
}

}  // namespace kedge::persist
