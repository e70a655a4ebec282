#include "persist/run_start.hpp"

#include <algorithm>
#include <span>

#include "base/attempt.hpp"
#include "fs/tree.hpp"
#include "kedge/error.hpp"
#include "persist/new_file.hpp"
#include "persist/prefix_runs.hpp"

namespace kedge::persist {
namespace {

constexpr std::string_view kNoncePrefix = "nonce-";

}  // namespace

std::string nonce_name(std::uint64_t incarnation) { return marker_name(kNoncePrefix, incarnation); }

std::optional<PreviousStart> RunStart::previous_start() const {
  return persist::previous_start(directory_.file_system(), directory_.path(), incarnation_, launch_id_);
}

std::uint64_t RunStart::newest_number(std::string_view kind) const {
  std::uint64_t newest = 0;
  for (const std::uint64_t number : marker_numbers(directory_.file_system(), directory_.path(), kind))
    newest = std::max(newest, number);
  return newest;
}

std::uint64_t RunStart::take_incarnation(LaunchInfo launch_info) {
  const std::string note = taken_marker_text(launch_info);
  launch_id_ = std::move(launch_info.launch_id);
  const std::uint64_t seen = std::max(newest_number(kTakenMarker), newest_number(kBegunMarker));
  // Exclusive create decides between two starts that saw the same number; the loser takes the next.
  for (std::uint64_t number = seen + 1; number < seen + kIncarnationTries; ++number) {
    const auto file = directory_.file_system().create(directory_.path_of(marker_name(kTakenMarker, number)), 0644);
    if (!file) continue;
    incarnation_ = number;  // withdraw() gives it back, whatever fails from here on
    file->write_with_crc(0, std::as_bytes(std::span(note)), 0);
    file->sync();
    directory_.sync();
    return number;
  }
  refuse(ErrorCode::io,
         "cannot take an incarnation number: another program keeps creating files here; end it and start again",
         directory_.path());
}

void RunStart::mark_drain() { directory_.write_once(marker(kDrainMarker), "\n"); }

void RunStart::mark_begun(const RunRecord& record) {
  begun_text_ = run_record_text(directory_.run(), record);
  directory_.write_once(marker(kBegunMarker), begun_text_);
  require_newest();
}

void RunStart::require_newest() const {
  if (is_newest()) return;
  refuse(ErrorCode::busy,
         "another start of this run has taken over, or the run was removed from the prefix; end this job, or "
         "the other",
         directory_.path());
}

/// Who removes a run leaves the directory of all runs' records. Without that, this is not the prefix as it was:
/// unmounted, with or without a mount point in its place, or moved.
void RunStart::require_reachable() const {
  const std::string& prefix = directory_.prefix();
  if (begun_text_.empty() || directory_.file_system().status(records_directory(prefix))) return;
  refuse(ErrorCode::io,
         "the prefix is missing: it was unmounted, moved or removed while the job was running; once it is "
         "back, checkpoints are flushed to it again",
         prefix);
}

/// The prefix may go and come back between two looks: what ends a job is seen twice.
bool RunStart::is_newest() const {
  for (int look = 0; look < 2; ++look) {
    require_reachable();
    if (is_newest_by_names()) return true;
  }
  require_reachable();
  return false;
}

/// Numbers begin at 1 again where the records were removed: then this start's own note is gone, or another's.
bool RunStart::is_newest_by_names() const {
  if (!begun_text_.empty() && !directory_.file_system().status(directory_.path())) return false;
  if (newest_number(kBegunMarker) > incarnation_) return false;
  if (begun_text_.empty()) return true;
  const std::string name = marker(kBegunMarker);
  return directory_.contains(name) && directory_.read(name) == begun_text_;
}

void RunStart::mark_ended() { persist::mark_ended(directory_.file_system(), directory_.path(), incarnation_); }

void RunStart::withdraw() {
  if (incarnation_ == 0) return;
  directory_.remove(nonce_name(incarnation_));
  directory_.remove(marker(kBegunMarker));
  directory_.remove(marker(kDrainMarker));  // else a job of this number is none
  // The number may be taken again: under it no container was touched and nothing was written here.
  if (newest_number(kTakenMarker) == incarnation_) directory_.remove(marker(kTakenMarker));
  else directory_.write_once(marker(kWithdrawnMarker), "\n");
  begun_text_.clear();
  incarnation_ = 0;
}

void RunStart::remove_records() {
  const std::string taken = marker(kTakenMarker);
  const std::string begun = marker(kBegunMarker);
  fs::FileSystem& file_system = directory_.file_system();
  for (const std::string& name : directory_.list_files()) {
    if (name != taken && name != begun) (void)fs::remove_tree(file_system, directory_.path_of(name));
  }
  directory_.remove(begun);
  directory_.remove(taken);
  file_system.remove(directory_.path());
  file_system.sync_directory(records_directory(directory_.prefix()));
}

void RunStart::write_nonce(const Id128& nonce) {
  const std::string name = nonce_name(incarnation_);
  directory_.remove(name);  // of a start that failed and could not remove it
  const std::string path = directory_.path_of(name);
  const auto file = directory_.file_system().create(path, 0644);
  if (!file) throw_name_taken(path);
  const std::string text = to_string(nonce) + "\n";
  file->write_with_crc(0, std::as_bytes(std::span(text)), 0);
}

void RunStart::remove_nonces() {
  for (const std::uint64_t number : marker_numbers(directory_.file_system(), directory_.path(), kNoncePrefix)) {
    if (number <= incarnation_) directory_.remove(nonce_name(number));
  }
}

}  // namespace kedge::persist
