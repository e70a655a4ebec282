#include "store/node_records.hpp"

#include <span>
#include <utility>

#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::store {
namespace {

constexpr std::string_view kRun = "run";
constexpr std::string_view kCommitted = "committed";

}  // namespace

NodeRecords::NodeRecords(std::shared_ptr<fs::FileSystem> file_system, Location location, LogicalRank writer)
    : file_system_(std::move(file_system)), location_(std::move(location)), writer_(writer) {}

Id128 NodeRecords::run_id() { return read(kRun); }

void NodeRecords::write_run_id(const Id128& run_id) { write(kRun, run_id); }

bool NodeRecords::tells_of_commit(const Id128& run_id) { return read(kCommitted) == run_id; }

void NodeRecords::note_commit(const Id128& run_id) { write(kCommitted, run_id); }

void NodeRecords::forget_commit() {
  file_system_->remove(fs::join(location_.directory, kCommitted));
  if (!location_.memory_backed) file_system_->sync_directory(location_.directory);
}

Id128 NodeRecords::read(std::string_view name) {
  const std::string path = fs::join(location_.directory, name);
  if (!file_system_->status(path)) return {};
  const auto file = file_system_->open(path, fs::Access::read);
  std::string text(32, '\0');
  if (file->status().size_bytes < text.size()) return {};
  (void)file->copy_out(0, std::as_writable_bytes(std::span(text)), 0);
  return parse_id(text).value_or(Id128{});
}

void NodeRecords::write(std::string_view name, const Id128& id) {
  const std::string path = fs::join(location_.directory, name);
  const std::string temporary = compose("{}.new-{}", path, writer_.value);
  file_system_->remove(temporary);
  const auto file = file_system_->create(temporary);
  if (!file)
    throw Error(Failure{ErrorCode::io, "the store's record cannot be written: the file already exists; remove it", -1,
                        temporary, 0});
  const std::string text = to_string(id) + "\n";
  file->copy_in(0, std::as_bytes(std::span(text)), 0);
  if (!location_.memory_backed) file->sync();
  file_system_->rename(temporary, path);
  if (!location_.memory_backed) file_system_->sync_directory(location_.directory);
}

}  // namespace kedge::store
