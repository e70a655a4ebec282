#include "persist/record_directory.hpp"

#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "fs/system_error.hpp"
#include "kedge/error.hpp"
#include "persist/prefix_runs.hpp"

namespace kedge::persist {
namespace {

constexpr std::string_view kProbePrefix = "probe-";

}  // namespace

RecordDirectory::RecordDirectory(std::shared_ptr<fs::FileSystem> file_system, const std::string& prefix,
                                 std::string run)
    : file_system_(std::move(file_system)),
      prefix_(make_prefix(*file_system_, prefix)),
      run_(std::move(run)),
      path_(records_directory(prefix_, run_)) {
  file_system_->make_directory(path_, 0755);
  const fs::FileStatus mine = directory_status(*file_system_, path_);
  if (mine.owner != file_system_->user()) {
    refuse(ErrorCode::io,
           compose("the run '{}' on this prefix belongs to user {}; give this job another run name", run_, mine.owner),
           path_);
  }
  if ((mine.mode & fs::kGroupOrOthersWrite) != 0) {
    refuse(ErrorCode::io,
           compose("others can write the run's records (mode {:04o}); run chmod go-w on the directory", mine.mode),
           path_);
  }
  // Records that nobody finds after a power loss would let a start begin from zero.
  fs::sync_parent_directories(*file_system_, path_);
}

std::string RecordDirectory::read(std::string_view name) const {
  return fs::read_text(*file_system_, path_of(name), kRecordBytesMax);
}

void RecordDirectory::write_once(std::string_view name, std::string_view text) const {
  auto file = file_system_->create(path_of(name), 0644);
  if (file) file->write_with_crc(0, std::as_bytes(std::span(text)), 0);
  // A name that is taken may be what an earlier try left before it failed: not yet on stable storage.
  else file = file_system_->open(path_of(name), fs::Access::read_write);
  file->sync();
  sync();
}

void RecordDirectory::replace(std::string_view name, std::string_view text, std::string_view temporary) const {
  remove(temporary);
  write_once(temporary, text);
  file_system_->rename(path_of(temporary), path_of(name));
  sync();
}

bool RecordDirectory::is_same_directory(const std::string& directory) const {
  const std::string name = compose("{}{}", kProbePrefix, to_string(random_id()));
  if (!file_system_->create(path_of(name), 0644)) return false;
  bool seen = false;
  const auto failure = attempt([&] { seen = file_system_->status(fs::join(directory, name)).has_value(); });
  remove(name);
  if (failure && !fs::is_access_error(failure->system_errno)) throw Error(*failure);
  return seen;
}

}  // namespace kedge::persist
