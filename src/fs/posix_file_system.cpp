// The file system of the operating system.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/filesystem/directory.hpp>
#include <boost/filesystem/operations.hpp>
#include <cstdio>

#include "base/file_size_signal.hpp"
#include "base/text.hpp"
#include "fs/choose_io.hpp"
#include "fs/file_system.hpp"
#include "fs/posix_file.hpp"
#include "fs/posix_lock.hpp"
#include "fs/posix_space.hpp"
#include "fs/system_error.hpp"
#include "fs/transfer.hpp"

namespace kedge::fs {
namespace {

// O_NONBLOCK keeps a pipe from blocking the open, which then refuses it.
constexpr int kOpenFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

int flags_of(Access access) noexcept { return access == Access::read ? O_RDONLY : O_RDWR; }

Descriptor open_descriptor(const std::string& path, int flags, std::uint32_t mode = 0) {
  return Descriptor(retry_interrupted([&] { return ::open(path.c_str(), flags, mode); }));
}

[[noreturn]] void throw_not_regular(const std::string& path) {
  throw Error(Failure{ErrorCode::io, "it is a device, pipe or socket, not a regular file; move it away", -1, path, 0});
}

constexpr int kListTries = 1000;  // each lists from the beginning, and a signal may interrupt it

/// Lists from the beginning, because an iterator that failed has no defined position.
boost::system::error_code list_names(const std::string& path, std::vector<std::string>& names) {
  names.clear();
  boost::system::error_code error;
  boost::filesystem::directory_iterator entry(path, error);
  while (!error && entry != boost::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  return error;
}

/// Throws if the path contains a dangling link.
void refuse_dangling_link(const std::string& path) {
  for (auto end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    boost::system::error_code error;
    const auto target = boost::filesystem::read_symlink(part, error);
    if (!error && !boost::filesystem::exists(part, error)) {
      throw Error(
          Failure{ErrorCode::not_found,
                  compose("{} is a symbolic link to {}, which does not exist; create the target or remove the link",
                          part, target.string()),
                  -1, path, ENOENT});
    }
    if (end == std::string::npos) return;
  }
}

class PosixFileSystem final : public FileSystem {
 public:
  std::unique_ptr<File> open(const std::string& path, Access access) override {
    Descriptor descriptor = open_descriptor(path, flags_of(access) | kOpenFlags);
    if (!descriptor.is_valid()) throw_system_error("open", path, errno);
    const struct stat info = stat_descriptor(descriptor, path);
    if (S_ISDIR(info.st_mode)) throw_system_error("open", path, EISDIR);
    if (!S_ISREG(info.st_mode)) throw_not_regular(path);
    return make_posix_file(std::move(descriptor), path, access, direct_writer_);
  }

  std::unique_ptr<File> create(const std::string& path, std::uint32_t mode) override {
    Descriptor descriptor = open_descriptor(path, O_RDWR | O_CREAT | O_EXCL | kOpenFlags, mode);
    if (!descriptor.is_valid()) {
      if (errno == EEXIST) return refuse_link_or_null(path);
      throw_system_error("create", path, errno);
    }
    return make_posix_file(std::move(descriptor), path, Access::read_write, direct_writer_);
  }

  void append(const std::string& path, std::span<const std::byte> bytes, std::uint32_t mode) override {
    const Descriptor descriptor = open_descriptor(path, O_WRONLY | O_APPEND | O_CREAT | kOpenFlags, mode);
    if (!descriptor.is_valid()) throw_system_error("open", path, errno);
    if (!S_ISREG(stat_descriptor(descriptor, path).st_mode)) throw_not_regular(path);
    const ScopedFileSizeSignalBlock no_signal;
    const auto written = retry_interrupted([&] { return ::write(descriptor.get(), bytes.data(), bytes.size()); });
    if (written < 0) throw_system_error("write", path, errno);
    if (static_cast<std::size_t>(written) != bytes.size()) throw_system_error("write", path, ENOSPC);
  }

  void remove(const std::string& path) override {
    if (std::remove(path.c_str()) != 0 && errno != ENOENT) throw_system_error("remove", path, errno);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) throw_system_error("rename to " + to, from, errno);
  }

  void make_directory(const std::string& path, std::uint32_t mode) override {
    if (::mkdir(path.c_str(), mode) == 0) return;
    const int error = errno;
    struct stat info {};
    if (error == EEXIST && ::lstat(path.c_str(), &info) == 0) {
      if (S_ISDIR(info.st_mode)) return;
      throw_system_error("create the directory", path, S_ISLNK(info.st_mode) ? ELOOP : ENOTDIR);
    }
    throw_system_error("create the directory", path, error);
  }

  std::vector<std::string> list(const std::string& path) override {
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode))
      throw_system_error("list the directory", path, ELOOP);
    std::vector<std::string> names;
    boost::system::error_code error = list_names(path, names);
    for (int tries = 1; error.value() == EINTR && tries < kListTries; ++tries) error = list_names(path, names);
    if (error) throw_system_error("list the directory", path, error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::optional<FileStatus> status(const std::string& path) override {
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0) return to_file_status(info);
    if (errno == ENOENT) return std::nullopt;
    throw_system_error("check the path", path, errno);
  }

  void sync_directory(const std::string& path) override {
    const Descriptor descriptor = open_descriptor(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!descriptor.is_valid()) throw_system_error("open the directory", path, errno);
    const int result = retry_interrupted([&] { return ::fsync(descriptor.get()); });
    // EINVAL: this filesystem needs no sync of directories.
    if (result != 0 && errno != EINVAL) throw_system_error("sync the directory", path, errno);
  }

  Space space(const std::string& path) override { return posix_space(path); }

  WriteProbe probe_writes(const ProbeTarget& target) override {
    return fs::probe_writes(*this, target, *direct_writer_);
  }

  std::string canonical(const std::string& path) override {
    boost::system::error_code error;
    const auto resolved = boost::filesystem::canonical(path, error);
    if (error.value() == ENOENT) refuse_dangling_link(path);
    if (error) throw_system_error("resolve the path", path, error.value());
    return resolved.string();
  }

  std::unique_ptr<Lock> try_lock(const std::string& path, std::string_view holder) override {
    return locks_.try_lock(path, holder);
  }
  std::optional<std::string> lock_holder(const std::string& path) override { return locks_.lock_holder(path); }
  bool holds_lock(const std::string& path) override { return locks_.holds_lock(path); }

  std::uint32_t user() const noexcept override { return ::geteuid(); }

  bool in_group(std::uint32_t group) const override {
    if (::getegid() == group) return true;
    std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
    const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
    return count > 0 && std::find(groups.begin(), groups.begin() + count, group) != groups.begin() + count;
  }

 private:
  static std::unique_ptr<File> refuse_link_or_null(const std::string& path) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) throw_system_error("create", path, ELOOP);
    return nullptr;
  }

  LockTable locks_;
  std::shared_ptr<DirectWriter> direct_writer_ = std::make_shared<DirectWriter>();
};

}  // namespace

std::shared_ptr<FileSystem> posix_file_system() { return std::make_shared<PosixFileSystem>(); }

}  // namespace kedge::fs
