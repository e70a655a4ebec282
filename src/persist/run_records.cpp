#include "persist/run_records.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>
#include <vector>

#include "base/checksum.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "fs/durable_path.hpp"
#include "kedge/error.hpp"

namespace kedge::persist {
namespace {

constexpr std::string_view kTakenPrefix = "incarnation-";
constexpr std::string_view kBegunPrefix = "begun-";
constexpr std::string_view kNoncePrefix = "nonce-";
constexpr std::string_view kUnfinishedPrefix = "unfinished-";
constexpr std::uint32_t kGroupOrOthersWrite = 022;
constexpr std::uint32_t kOthersWrite = 002;
constexpr std::uint32_t kSticky = 01000;
constexpr int kIncarnationTries = 1000;

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

[[noreturn]] void refuse(std::string message, const std::string& path) {
  throw Error(Failure{ErrorCode::io, std::move(message), -1, path, 0});
}

fs::FileStatus directory_status(fs::FileSystem& file_system, const std::string& path) {
  const auto status = file_system.status(path);
  if (!status || status->kind != fs::FileStatus::Kind::directory)
    refuse("not a directory; remove it or choose another prefix", path);
  return *status;
}

void make_directories(fs::FileSystem& file_system, const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (!parent.empty() && !file_system.status(parent)) file_system.make_directory(parent, 0777);
  }
  if (!file_system.status(path)) file_system.make_directory(path, 0777);
}

void refuse_if_open_to_all(const fs::FileStatus& status, const std::string& directory) {
  if ((status.mode & kOthersWrite) == 0 || (status.mode & kSticky) != 0) return;
  refuse(
      compose("every user can replace files in the prefix (mode {:04o}); run chmod o-w on this directory", status.mode),
      directory);
}

std::string read_text(fs::FileSystem& file_system, const std::string& path) {
  const auto file = file_system.open(path, fs::Access::read);
  std::string text(std::min<std::uint64_t>(file->status().size_bytes, 65536), '\0');
  (void)file->copy_out(0, std::as_writable_bytes(std::span(text)), 0);
  return text;
}

}  // namespace

std::string default_run_name(std::string_view canonical_prefix, std::string_view communicator_name) {
  std::string name;
  for (const char c : communicator_name.substr(0, 40)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    name += plain ? c : '-';
  }
  if (name.empty()) name = "run";
  const std::uint32_t hash =
      crc32c(std::as_bytes(std::span(canonical_prefix)), crc32c(std::as_bytes(std::span(communicator_name))));
  return compose("{}-{:08x}", name, hash);
}

RunRecords::RunRecords(std::shared_ptr<fs::FileSystem> file_system, const std::string& prefix, std::string run,
                       std::string_view communicator_name)
    : file_system_(std::move(file_system)), run_(std::move(run)) {
  try {
    make_directories(*file_system_, prefix);
  } catch (const Error& error) {
    Failure failure = error.failure();
    failure.message += "; this is the prefix: set persistent.path to a directory that all nodes share";
    throw Error(std::move(failure));
  }
  prefix_ = file_system_->canonical(prefix);
  refuse_if_open_to_all(directory_status(*file_system_, prefix_), prefix_);
  if (run_.empty()) run_ = default_run_name(prefix_, communicator_name);
  const std::string records = fs::join(prefix_, ".kedge");
  file_system_->make_directory(records, 0755);
  refuse_if_open_to_all(directory_status(*file_system_, records), records);
  directory_ = fs::join(records, run_);
  file_system_->make_directory(directory_, 0755);
  const fs::FileStatus mine = directory_status(*file_system_, directory_);
  if (mine.owner != file_system_->user()) {
    refuse(compose("the run '{}' on this prefix belongs to user {}; give this job another run name", run_, mine.owner),
           directory_);
  }
  if ((mine.mode & kGroupOrOthersWrite) != 0) {
    refuse(compose("others can write the run's records (mode {:04o}); run chmod go-w on the directory", mine.mode),
           directory_);
  }
  // Records that nobody finds after a power loss would let a start begin from zero.
  fs::sync_path(*file_system_, directory_);
}

std::vector<std::uint64_t> RunRecords::numbers(std::string_view kind) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : file_system_->list(directory_)) {
    if (!name.starts_with(kind)) continue;
    std::uint64_t number = 0;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kind.size(), end, number);
    if (parsed.ec == std::errc{} && parsed.ptr == end) numbers.push_back(number);
  }
  return numbers;
}

std::uint64_t RunRecords::newest(std::string_view kind) {
  std::uint64_t newest = 0;
  for (const std::uint64_t number : numbers(kind)) newest = std::max(newest, number);
  return newest;
}

std::uint64_t RunRecords::take_incarnation() {
  const std::uint64_t seen = newest(kTakenPrefix);
  // Exclusive create decides between two starts that saw the same number; the loser takes the next.
  for (std::uint64_t number = seen + 1; number < seen + kIncarnationTries; ++number) {
    if (!file_system_->create(record(compose("{}{}", kTakenPrefix, number)), 0644)) continue;
    file_system_->sync_directory(directory_);
    incarnation_ = number;
    return number;
  }
  refuse("no incarnation number could be taken: another program keeps creating them", directory_);
}

void RunRecords::begin_incarnation() {
  (void)file_system_->create(record(compose("{}{}", kBegunPrefix, incarnation_)), 0644);
  file_system_->sync_directory(directory_);
  require_newest_incarnation();
}

void RunRecords::require_newest_incarnation() {
  if (is_newest_incarnation()) return;
  throw Error(
      Failure{ErrorCode::busy, "another start of this run has taken over; end one of the two jobs", -1, directory_, 0});
}

bool RunRecords::is_newest_incarnation() { return newest(kBegunPrefix) <= incarnation_; }

void RunRecords::withdraw_incarnation() {
  if (incarnation_ == 0) return;
  file_system_->remove(record(compose("{}{}", kNoncePrefix, incarnation_)));
  file_system_->remove(record(compose("{}{}", kBegunPrefix, incarnation_)));
  // The number may be taken again: under it no container was touched and nothing was written here.
  if (newest(kTakenPrefix) == incarnation_) {
    file_system_->remove(record(compose("{}{}", kTakenPrefix, incarnation_)));
  }
  incarnation_ = 0;
}

void RunRecords::write_nonce(const Id128& nonce) {
  const std::string path = record(compose("{}{}", kNoncePrefix, incarnation_));
  file_system_->remove(path);  // of a start that came to nothing and could not remove it
  const auto file = file_system_->create(path, 0644);
  if (!file) refuse("file already exists: another program writes to this directory", path);
  const std::string text = to_string(nonce) + "\n";
  file->copy_in(0, std::as_bytes(std::span(text)), 0);
}

void RunRecords::remove_nonces() {
  for (const std::uint64_t number : numbers(kNoncePrefix)) {
    if (number <= incarnation_) file_system_->remove(record(compose("{}{}", kNoncePrefix, number)));
  }
}

std::optional<Id128> RunRecords::run_id() {
  const std::string path = record("run.json");
  if (!file_system_->status(path)) return std::nullopt;
  const Json content = Json::parse(read_text(*file_system_, path), nullptr, /*allow_exceptions=*/false);
  std::optional<Id128> id;
  if (content.is_object() && content.contains("run_id") && content["run_id"].is_string()) {
    id = parse_id(content["run_id"].get<std::string>());
  }
  if (!id) {
    throw Error(Failure{ErrorCode::corrupt,
                        "the run record cannot be read; restore it from a copy, or give the job another run name", -1,
                        path, 0});
  }
  return id;
}

void RunRecords::write_run_id(const Id128& run_id) {
  const Json content = {{"format", 1}, {"run", run_}, {"run_id", to_string(run_id)}};
  const std::string temporary = record(compose("run.json.new-{}", incarnation_));
  file_system_->remove(temporary);
  write_once(temporary, content.dump(2) + "\n");
  file_system_->rename(temporary, record("run.json"));
  file_system_->sync_directory(directory_);
}

bool RunRecords::has_first_commit() { return file_system_->status(record("first-commit")).has_value(); }

void RunRecords::note_first_commit(const Id128& commit_id) {
  write_once(record("first-commit"), to_string(commit_id) + "\n");
}

void RunRecords::forget_commits() {
  require_newest_incarnation();
  file_system_->remove(record("first-commit"));
  file_system_->sync_directory(directory_);
}

bool RunRecords::has_first_manifest() { return file_system_->status(record("first-master")).has_value(); }

void RunRecords::note_first_manifest(const Id128& commit_id) {
  write_once(record("first-master"), to_string(commit_id) + "\n");
}

// Records are called unfinished-<incarnation>-<directory>: several starts may have one for the same directory.
void RunRecords::note_unfinished(std::string_view directory) {
  require_newest_incarnation();
  write_once(record(compose("{}{}-{}", kUnfinishedPrefix, incarnation_, directory)), "\n");
}

void RunRecords::forget_unfinished(std::string_view directory) {
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
  if (file) file->copy_in(0, std::as_bytes(std::span(text)), 0);
  // A name that is taken may be what an earlier try left before it failed: not yet on stable storage.
  else file = file_system_->open(path, fs::Access::read_write);
  file->sync();
  file_system_->sync_directory(directory_);
}

}  // namespace kedge::persist
