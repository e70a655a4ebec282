#include "store/node_records.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "kedge/error.hpp"
#include "store/file_name.hpp"

namespace kedge::store {
namespace {

constexpr std::size_t kIdCharacters = 32;
constexpr std::uint64_t kRecordBytesMax = 8192;

/// Empty if there is none.
std::string read_text(fs::FileSystem& file_system, const std::string& path) {
  if (!file_system.status(path)) return {};
  const auto file = file_system.open(path, fs::Access::read);
  std::string text(std::min(file->status().size_bytes, kRecordBytesMax), '\0');
  (void)file->copy_out(0, std::as_writable_bytes(std::span(text)), 0);
  return text;
}

Id128 id_in(const std::string& text) { return parse_id(text.substr(0, kIdCharacters)).value_or(Id128{}); }

/// An id and a path, a line each.
std::string to_text(const StoreRecord& record) { return compose("{}\n{}\n", to_string(record.run_id), record.prefix); }

Id128 noted_commit(fs::FileSystem& file_system, const std::string& directory) {
  return id_in(read_text(file_system, fs::join(directory, kCommitRecord)));
}

}  // namespace

StoreRecord read_store_record(fs::FileSystem& file_system, const std::string& directory) {
  const std::string text = read_text(file_system, fs::join(directory, kRunRecord));
  if (text.size() < kIdCharacters + 2 || text[kIdCharacters] != '\n' || text.back() != '\n') return {};
  const Id128 id = id_in(text);
  if (id.is_none()) return {};
  return {id, text.substr(kIdCharacters + 1, text.size() - kIdCharacters - 2)};
}

NodeRecords::NodeRecords(std::shared_ptr<fs::FileSystem> file_system, Location location, LogicalRank writer)
    : file_system_(std::move(file_system)), location_(std::move(location)), writer_(writer) {}

std::vector<StoreOfName> stores_of_name(fs::FileSystem& file_system, const std::string& root,
                                        const Surroundings& surroundings, const std::string& run) {
  std::vector<StoreOfName> stores;
  for (const std::string& name : file_system.list(root)) {
    const std::string directory = fs::join(root, name);
    if (!may_be_of_run(name, file_system.user(), run) || !is_private(file_system, directory)) continue;
    (void)attempt([&] {
      const StoreRecord record = read_store_record(file_system, directory);
      const Owner owner{run, record.run_id, record.prefix};
      if (record.run_id.is_none() || name != directory_name(file_system.user(), surroundings, owner)) return;
      stores.push_back({directory, record, noted_commit(file_system, directory) == record.run_id});
    });
  }
  return stores;
}

void NodeRecords::write_owner(const Id128& run_id) {
  const StoreRecord record{run_id, location_.prefix};
  if (read_store_record(*file_system_, location_.directory) != record) write(kRunRecord, to_text(record));
}

bool NodeRecords::has_commit(const Id128& run_id) { return noted_commit(*file_system_, location_.directory) == run_id; }

void NodeRecords::note_commit(const Id128& run_id) { write(kCommitRecord, to_string(run_id) + "\n"); }

void NodeRecords::forget_commit() {
  file_system_->remove(fs::join(location_.directory, kCommitRecord));
  if (!location_.memory_backed) file_system_->sync_directory(location_.directory);
}

void NodeRecords::write(std::string_view name, const std::string& text) {
  const std::string path = fs::join(location_.directory, name);
  const std::string temporary = compose("{}.new-{}", path, writer_.value);
  file_system_->remove(temporary);
  const auto file = file_system_->create(temporary);
  if (!file)
    throw Error(Failure{ErrorCode::io, "the store's record cannot be written: the file already exists; remove it", -1,
                        temporary, 0});
  file->copy_in(0, std::as_bytes(std::span(text)), 0);
  if (!location_.memory_backed) file->sync();
  file_system_->rename(temporary, path);
  if (!location_.memory_backed) file_system_->sync_directory(location_.directory);
}

}  // namespace kedge::store
