#include "store/store_record_files.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "kedge/error.hpp"
#include "store/file_name.hpp"
#include "store/sealed_commits.hpp"

namespace kedge::store {
namespace {

constexpr std::size_t kNamesMax = 8;

void add_names(std::vector<std::string>& names, const std::vector<std::string>& older) {
  for (const std::string& name : older) {
    if (std::ranges::find(names, name) == names.end() && names.size() < kNamesMax) names.push_back(name);
  }
}

Id128 read_commit_marker(fs::FileSystem& file_system, const std::string& directory) {
  return parse_leading_id(read_small_file(file_system, directory, kCommitRecord));
}

/// A store with only outputs has no commit marker, because no restart uses outputs.
bool has_output(fs::FileSystem& file_system, const std::string& directory, const Id128& run_id) {
  return std::ranges::any_of(sealed_commits(file_system, directory, run_id),
                             [](const CommitHead& commit) { return commit.is_output; });
}

}  // namespace

StoreRecordFiles::StoreRecordFiles(std::shared_ptr<fs::FileSystem> file_system, StoreLocation location,
                                   LogicalRank writer)
    : file_system_(std::move(file_system)), location_(std::move(location)), writer_rank_(writer) {}

std::vector<NamedStore> find_stores_of_run(fs::FileSystem& file_system, const std::string& root,
                                           const LocationOptions& location_options, const std::string& run,
                                           OnUnreadable unreadable) {
  std::vector<NamedStore> stores;
  for (const std::string& name : file_system.list(root)) {
    const std::string directory = fs::join(root, name);
    if (!may_be_of_run(name, file_system.user(), location_options, run) ||
        !is_private_directory(file_system, directory))
      continue;
    auto failure = attempt([&] {
      const StoreRecord record = read_store_record(file_system, directory);
      if (record.run_id.is_none() ||
          !is_directory_of(name, file_system.user(), location_options, run, record.prefix_id))
        return;
      const bool has_commits = read_commit_marker(file_system, directory) == record.run_id ||
                               has_output(file_system, directory, record.run_id);
      stores.push_back({directory, record, has_commits});
    });
    if (!failure || failure->code == ErrorCode::not_found) continue;  // the store may vanish meanwhile
    if (unreadable == OnUnreadable::skip) continue;
    rethrow_with_advice(
        *std::move(failure),
        "; this store may belong to this run: restart once the file can be read, remove the store's directory "
        "if no job needs it, or set KEDGE_START=fresh to start over and leave the store as it "
        "is");
  }
  return stores;
}

bool StoreRecordFiles::is_owned_by(const Id128& run_id, const Id128& prefix_id) {
  bool is = false;
  (void)attempt([&] {
    const StoreRecord record = read_store_record(*file_system_, location_.directory);
    is = record.run_id == run_id && record.prefix_id == prefix_id;
  });
  return is;
}

void StoreRecordFiles::write_owner(StoreRecord record) {
  std::optional<StoreRecord> now;
  // An unreadable record is overwritten.
  (void)attempt([&] { now = read_store_record(*file_system_, location_.directory); });
  if (now && now->run_id == record.run_id && now->prefix_id == record.prefix_id)
    add_names(record.prefix_paths, now->prefix_paths);
  if (now != record) write(kRunRecord, to_text(record));
}

void StoreRecordFiles::add_prefix_paths(const StoreRecord& record) {
  StoreRecord now = read_store_record(*file_system_, location_.directory);
  now.prefix_paths = record.prefix_paths;
  write_owner(std::move(now));
}

/// An unreadable marker counts as this run's.
bool StoreRecordFiles::has_commit_marker(const Id128& run_id) {
  bool has = true;
  (void)attempt([&] { has = read_commit_marker(*file_system_, location_.directory) == run_id; });
  return has;
}

void StoreRecordFiles::write_commit_marker(const Id128& run_id) { write(kCommitRecord, to_string(run_id) + "\n"); }

void StoreRecordFiles::remove_commit_marker() { remove(kCommitRecord); }

std::optional<FailedFlush> StoreRecordFiles::failed_flush() {
  return read_failed_flush(*file_system_, location_.directory);
}

void StoreRecordFiles::record_failed_flush(const FailedFlush& failed) { write(kFlushRecord, to_text(failed)); }

void StoreRecordFiles::remove_failed_flush() { remove(kFlushRecord); }

bool StoreRecordFiles::has_damage_marker() {
  return file_system_->status(fs::join(location_.directory, kDamageRecord)).has_value();
}

void StoreRecordFiles::write_damage_marker(const std::string& description) { write(kDamageRecord, description + "\n"); }

void StoreRecordFiles::remove_damage_marker() { remove(kDamageRecord); }

void StoreRecordFiles::remove(std::string_view name) {
  file_system_->remove(fs::join(location_.directory, name));
  if (!location_.memory_backed) file_system_->sync_directory(location_.directory);
}

void StoreRecordFiles::write(std::string_view name, const std::string& text) {
  const std::string path = fs::join(location_.directory, name);
  const std::string temporary = compose("{}.new-{}", path, writer_rank_.value);
  file_system_->remove(temporary);
  const auto file = file_system_->create(temporary);
  if (!file)
    throw Error(Failure{ErrorCode::io, "the store's record cannot be written: the file already exists; remove it", -1,
                        temporary, 0});
  file->write_with_crc(0, std::as_bytes(std::span(text)), 0);
  if (!location_.memory_backed) file->sync();
  file_system_->rename(temporary, path);
  if (!location_.memory_backed) file_system_->sync_directory(location_.directory);
}

}  // namespace kedge::store
