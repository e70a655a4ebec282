#include "persist/run_records.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "checksum/crc32c.hpp"
#include "fs/durable_path.hpp"
#include "fs/file_mode.hpp"
#include "fs/system_error.hpp"
#include "fs/tree.hpp"
#include "kedge/error.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/record_json.hpp"

namespace kedge::persist {
namespace {

constexpr std::string_view kNoncePrefix = "nonce-";
constexpr std::string_view kProbePrefix = "probe-";
constexpr std::string_view kUnfinishedPrefix = "unfinished-";
constexpr std::string_view kRunFile = "run.json";
constexpr std::string_view kFirstCommit = "first-commit";
constexpr std::string_view kFirstManifest = "first-master";  // on disk: do not change
constexpr std::uint64_t kRecordBytesMax = std::uint64_t{1} << 20U;
constexpr std::size_t kIdCharacters = 32;

struct Unfinished {
  std::uint64_t incarnation = 0;
  std::string directory;
};

std::optional<Unfinished> parse_unfinished(std::string_view name) {
  if (!name.starts_with(kUnfinishedPrefix)) return std::nullopt;
  name.remove_prefix(kUnfinishedPrefix.size());
  Unfinished found;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data(), end, found.incarnation);
  if (parsed.ec != std::errc{} || parsed.ptr == end || *parsed.ptr != '-') return std::nullopt;
  found.directory.assign(parsed.ptr + 1, end);
  return found;
}

std::string read_text(fs::FileSystem& file_system, const std::string& path) {
  const auto file = file_system.open(path, fs::Access::read);
  std::string text(std::min<std::uint64_t>(file->status().size_bytes, kRecordBytesMax), '\0');
  file->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

/// A record that says another id than was written would make the run forget all that it has.
std::string check_of(const Json& content) {
  const std::string text = content.dump();
  return compose("{:08x}", crc32c(std::as_bytes(std::span(text))));
}

/// Discarded if it is none.
Json to_json(const std::string& text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

std::optional<RunRecord> parse_record(Json content) {
  if (!content.is_object()) return std::nullopt;
  const auto id = parse_id(text_in(content, "run_id").value_or(""));
  const auto check = text_in(content, "crc32c");
  content.erase("crc32c");
  if (!id || id->is_none() || check != check_of(content)) return std::nullopt;
  RunRecord record;
  record.run_id = *id;
  record.prefix = bytes_in(content, "prefix");
  record.prefix_id = parse_id(text_in(content, "place_id").value_or("")).value_or(Id128{});
  if (content.contains("fingerprint")) record.fingerprint = bytes_of(content["fingerprint"]);
  record.store = bytes_in(content, "store");
  if (content.contains("former_prefixes") && content["former_prefixes"].is_array()) {
    for (const Json& path : content["former_prefixes"]) {
      if (auto text = bytes_of(path)) record.former_prefixes.push_back(*std::move(text));
    }
  }
  if (content.contains("given_up") && content["given_up"].is_array()) {
    for (const Json& one : content["given_up"]) {
      if (const auto run = one.is_string() ? parse_id(one.get<std::string>()) : std::nullopt) {
        record.given_up.push_back(*run);
      }
    }
  }
  return record;
}

}  // namespace

std::string run_record_path(std::string_view directory) { return fs::join(directory, kRunFile); }

FoundRecord read_run_record(fs::FileSystem& file_system, const std::string& directory) {
  const std::string path = run_record_path(directory);
  FoundRecord found;
  if (!file_system.status(path)) return found;
  // A record that cannot be read is rebuilt like a damaged one, from the notes of earlier starts.
  found.unreadable = attempt([&] { found.record = parse_record(to_json(read_text(file_system, path))); });
  found.damaged = !found.record;
  return found;
}

std::optional<RunRecord> read_record_of_newest_start(fs::FileSystem& file_system, const std::string& directory) {
  std::vector<std::uint64_t> starts = marker_numbers(file_system, directory, kBegunMarker);
  std::ranges::sort(starts, std::greater<>());
  for (const std::uint64_t number : starts) {
    const std::string path = fs::join(directory, compose("{}{}", kBegunMarker, number));
    std::optional<RunRecord> found;
    (void)attempt([&] { found = parse_record(to_json(read_text(file_system, path))); });
    if (found) return found;
  }
  return std::nullopt;
}

std::uint64_t newest_job_start(fs::FileSystem& file_system, const std::string& directory) {
  const std::vector<std::uint64_t> drains = marker_numbers(file_system, directory, kDrainMarker);
  std::uint64_t newest = 0;
  for (const std::uint64_t start : marker_numbers(file_system, directory, kBegunMarker)) {
    if (std::ranges::find(drains, start) == drains.end()) newest = std::max(newest, start);
  }
  return newest;
}

std::string nonce_name(std::uint64_t incarnation) { return compose("{}{}", kNoncePrefix, incarnation); }

bool has_checkpoints(fs::FileSystem& file_system, const std::string& directory) {
  return file_system.status(fs::join(directory, kFirstCommit)) ||
         file_system.status(fs::join(directory, kFirstManifest));
}

RunRecords::RunRecords(std::shared_ptr<fs::FileSystem> file_system, const std::string& prefix, std::string run)
    : file_system_(std::move(file_system)), prefix_(make_prefix(*file_system_, prefix)), run_(std::move(run)) {
  directory_ = records_directory(prefix_, run_);
  file_system_->make_directory(directory_, 0755);
  const fs::FileStatus mine = directory_status(*file_system_, directory_);
  if (mine.owner != file_system_->user()) {
    refuse(ErrorCode::io,
           compose("the run '{}' on this prefix belongs to user {}; give this job another run name", run_, mine.owner),
           directory_);
  }
  if ((mine.mode & fs::kGroupOrOthersWrite) != 0) {
    refuse(ErrorCode::io,
           compose("others can write the run's records (mode {:04o}); run chmod go-w on the directory", mine.mode),
           directory_);
  }
  // Records that nobody finds after a power loss would let a start begin from zero.
  fs::sync_path(*file_system_, directory_);
}

std::uint64_t RunRecords::newest(std::string_view kind) {
  std::uint64_t newest = 0;
  for (const std::uint64_t number : marker_numbers(*file_system_, directory_, kind)) newest = std::max(newest, number);
  return newest;
}

std::uint64_t RunRecords::take_incarnation(LaunchInfo launch_info) {
  launch_info_ = std::move(launch_info);
  const std::string note = taken_marker_text(launch_info_);
  const std::uint64_t seen = std::max(newest(kTakenMarker), newest(kBegunMarker));
  // Exclusive create decides between two starts that saw the same number; the loser takes the next.
  for (std::uint64_t number = seen + 1; number < seen + kIncarnationTries; ++number) {
    const auto file = file_system_->create(record(compose("{}{}", kTakenMarker, number)), 0644);
    if (!file) continue;
    incarnation_ = number;
    file->write_with_crc(0, std::as_bytes(std::span(note)), 0);
    file->sync();
    file_system_->sync_directory(directory_);
    return number;
  }
  refuse(ErrorCode::io,
         "no incarnation number could be taken: another program keeps creating files here; end it and start again",
         directory_);
}

void RunRecords::begin_incarnation(const RunRecord& content) {
  begun_ = text_of(content);
  run_id_ = content.run_id;
  write_once(record(compose("{}{}", kBegunMarker, incarnation_)), begun_);
  require_newest_incarnation();
}

void RunRecords::mark_drain() { write_once(record(compose("{}{}", kDrainMarker, incarnation_)), "\n"); }

void RunRecords::require_newest_incarnation() {
  if (is_newest_incarnation()) return;
  throw Error(
      Failure{ErrorCode::busy,
              "another start of this run has taken over, or the run was removed from the prefix; end this job, or "
              "the other",
              -1, directory_, 0});
}

/// Who removes a run leaves the directory of all runs' records. Without that, this is not the prefix as it was:
/// unmounted, with or without a mount point in its place, or moved.
void RunRecords::require_reachable() {
  if (begun_.empty() || file_system_->status(records_directory(prefix_))) return;
  throw Error(
      Failure{ErrorCode::io,
              "the prefix is not there: it was unmounted, moved or removed while the job was running; once it is back, "
              "checkpoints are flushed to it again",
              -1, prefix_, 0});
}

/// The prefix may go and come back between two looks: what ends a job is seen twice.
bool RunRecords::is_newest_incarnation() {
  for (int look = 0; look < 2; ++look) {
    require_reachable();
    if (seems_newest()) return true;
  }
  require_reachable();
  return false;
}

/// Numbers begin at 1 again where the records were removed: then this start's own note is gone, or another's.
bool RunRecords::seems_newest() {
  if (!begun_.empty() && !file_system_->status(directory_)) return false;
  if (newest(kBegunMarker) > incarnation_) return false;
  if (begun_.empty()) return true;
  const std::string path = record(compose("{}{}", kBegunMarker, incarnation_));
  return file_system_->status(path) && read_text(*file_system_, path) == begun_;
}

void RunRecords::withdraw_incarnation() {
  if (incarnation_ == 0) return;
  file_system_->remove(record(nonce_name(incarnation_)));
  file_system_->remove(record(compose("{}{}", kBegunMarker, incarnation_)));
  file_system_->remove(record(compose("{}{}", kDrainMarker, incarnation_)));  // else a job of this number is none
  // The number may be taken again: under it no container was touched and nothing was written here.
  if (newest(kTakenMarker) == incarnation_) {
    file_system_->remove(record(compose("{}{}", kTakenMarker, incarnation_)));
  } else {
    write_once(record(compose("{}{}", kWithdrawnMarker, incarnation_)), "\n");
  }
  begun_.clear();
  incarnation_ = 0;
}

void RunRecords::remove_all() {
  const std::string taken = compose("{}{}", kTakenMarker, incarnation_);
  const std::string begun = compose("{}{}", kBegunMarker, incarnation_);
  for (const std::string& name : file_system_->list(directory_)) {
    if (name != taken && name != begun) (void)fs::remove_tree(*file_system_, record(name));
  }
  file_system_->remove(record(begun));
  file_system_->remove(record(taken));
  file_system_->remove(directory_);
  file_system_->sync_directory(records_directory(prefix_));
}

void RunRecords::write_nonce(const Id128& nonce) {
  const std::string path = record(nonce_name(incarnation_));
  file_system_->remove(path);  // of a start that failed and could not remove it
  const auto file = file_system_->create(path, 0644);
  if (!file)
    refuse(ErrorCode::io, "file already exists: another program writes to this directory; end it or remove the file",
           path);
  const std::string text = to_string(nonce) + "\n";
  file->write_with_crc(0, std::as_bytes(std::span(text)), 0);
}

void RunRecords::remove_nonces() {
  for (const std::uint64_t number : marker_numbers(*file_system_, directory_, kNoncePrefix)) {
    if (number <= incarnation_) file_system_->remove(record(nonce_name(number)));
  }
}

std::string RunRecords::text_of(const RunRecord& content) const {
  Json json = {{"format", 1},
               {"run", run_},
               {"run_id", to_string(content.run_id)},
               {"place_id", to_string(content.prefix_id)},
               {"prefix", bytes_json(content.prefix)},
               {"former_prefixes", Json::array()}};
  for (const std::string& path : content.former_prefixes) json["former_prefixes"].push_back(bytes_json(path));
  if (content.fingerprint) json["fingerprint"] = bytes_json(*content.fingerprint);
  if (!content.store.empty()) json["store"] = bytes_json(content.store);
  if (!content.given_up.empty()) {
    json["given_up"] = Json::array();
    for (const Id128& run_id : content.given_up) json["given_up"].push_back(to_string(run_id));
  }
  json["crc32c"] = check_of(json);
  return json.dump(2) + "\n";
}

void RunRecords::write_record(const RunRecord& content) { replace(kRunFile, text_of(content)); }

void RunRecords::record_store(const std::string& store) {
  require_newest_incarnation();
  std::optional<RunRecord> record = read_record().record;
  if (!record || record->store == store) return;
  record->store = store;
  write_record(*record);
}

bool RunRecords::is_same_directory(const std::string& directory) {
  const std::string name = compose("{}{}", kProbePrefix, to_string(random_id()));
  if (!file_system_->create(record(name), 0644)) return false;
  bool seen = false;
  const auto failure = attempt([&] { seen = file_system_->status(fs::join(directory, name)).has_value(); });
  file_system_->remove(record(name));
  if (failure && !fs::is_access_error(failure->system_errno)) throw Error(*failure);
  return seen;
}

/// The commit's id, and the run's behind it.
void RunRecords::note(std::string_view name, const Id128& commit_id) {
  write_once(record(name), compose("{}\n{}\n", to_string(commit_id), to_string(run_id_)));
}

/// A note that cannot be read may be this run's.
bool RunRecords::has_marker(std::string_view name, const Id128& run_id) {
  if (!file_system_->status(record(name))) return false;
  std::optional<Id128> whose;
  (void)attempt([&] {
    const std::string text = read_text(*file_system_, record(name));
    if (text.size() > kIdCharacters + 1) whose = parse_id(text.substr(kIdCharacters + 1, kIdCharacters));
  });
  return !whose || run_id.is_none() || whose->is_none() || *whose == run_id;
}

void RunRecords::remove_markers_of_others(const Id128& run_id) {
  for (const std::string_view name : {kFirstCommit, kFirstManifest}) {
    if (file_system_->status(record(name)) && !has_marker(name, run_id)) file_system_->remove(record(name));
  }
}

bool RunRecords::has_first_commit(const Id128& run_id) { return has_marker(kFirstCommit, run_id); }

void RunRecords::mark_first_commit(const Id128& commit_id) {
  require_newest_incarnation();
  note(kFirstCommit, commit_id);
}

void RunRecords::remove_commit_markers() {
  require_newest_incarnation();
  file_system_->remove(record(kFirstCommit));
  file_system_->sync_directory(directory_);
}

bool RunRecords::has_first_manifest(const Id128& run_id) { return has_marker(kFirstManifest, run_id); }

void RunRecords::mark_first_manifest(const Id128& commit_id) { note(kFirstManifest, commit_id); }

// Records are called unfinished-<incarnation>-<directory>: several starts may have one for the same directory.
void RunRecords::mark_unfinished(std::string_view directory) {
  require_newest_incarnation();
  write_once(record(compose("{}{}-{}", kUnfinishedPrefix, incarnation_, directory)), "\n");
}

void RunRecords::unmark_unfinished(std::string_view directory) {
  for (const std::string& name : file_system_->list(directory_)) {
    const auto found = parse_unfinished(name);
    if (found && found->incarnation <= incarnation_ && found->directory == directory)
      file_system_->remove(record(name));
  }
}

std::vector<std::string> RunRecords::unfinished() {
  require_newest_incarnation();
  std::vector<std::string> directories;
  for (const std::string& name : file_system_->list(directory_)) {
    const auto found = parse_unfinished(name);
    if (found && found->incarnation <= incarnation_) directories.push_back(found->directory);
  }
  return directories;
}

bool RunRecords::is_discarded(const Id128& commit_id) {
  return file_system_->status(record("discarded-" + to_string(commit_id))).has_value();
}

void RunRecords::discard(const Id128& commit_id) { write_once(record("discarded-" + to_string(commit_id)), "\n"); }

void RunRecords::write_once(const std::string& path, std::string_view text) {
  auto file = file_system_->create(path, 0644);
  if (file) file->write_with_crc(0, std::as_bytes(std::span(text)), 0);
  // A name that is taken may be what an earlier try left before it failed: not yet on stable storage.
  else file = file_system_->open(path, fs::Access::read_write);
  file->sync();
  file_system_->sync_directory(directory_);
}

void RunRecords::replace(std::string_view name, std::string_view text) {
  const std::string temporary = record(compose("{}.new-{}", name, incarnation_));
  file_system_->remove(temporary);
  write_once(temporary, text);
  file_system_->rename(temporary, record(name));
  file_system_->sync_directory(directory_);
}

}  // namespace kedge::persist
