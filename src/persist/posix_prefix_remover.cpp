// Removes commits from a parallel filesystem.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "persist/posix_prefix.hpp"
#include "persist/prefix_retention.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::persist {
namespace {

class PosixRemover final : public PrefixRemover {
 public:
  PosixRemover(std::shared_ptr<PosixPrefix> prefix, PrefixReader& reader)
      : prefix_(std::move(prefix)), file_system_(prefix_->file_system()), reader_(reader) {}

  void discard_unpublished(const TagEntry& entry) override {
    prefix_->run_start().require_newest();
    if (!prefix_->is_published(entry.directory)) clear_name(entry.directory);
  }

  /// The manifest first: from then on it is no commit, whatever of its data is still there.
  void retract(const TagEntry& entry) override {
    (void)prefix_->run_start();
    const auto note = [&] {
      prefix_->unfinished_tags().mark(entry.directory);
    };  // checks that this start may still remove
    const auto not_noted = attempt(note);
    if (not_noted && not_noted->code != ErrorCode::no_space) throw Error(*not_noted);
    if (prefix_->is_own_directory(entry.directory)) {
      const std::string path = prefix_->path_of(entry.directory);
      file_system_.remove(fs::join(path, kManifestFile));
      file_system_.sync_directory(path);
    }
    if (not_noted) note();  // the manifest's space is free now
    prefix_->catalog().remove(entry.directory);
  }

  [[nodiscard]] bool remove_container(const std::string& name, LogicalRank logical_rank,
                                      const fs::ShouldStop& should_stop) override {
    if (!prefix_->is_own_directory(name) || prefix_->is_published(name)) return true;
    // The container last: by those that are left, a later start knows how many ranks there were.
    if (!prefix_->plain_directory(name).remove_files_of_rank(logical_rank, should_stop)) return false;
    const std::string data = fs::join(prefix_->path_of(name), kDataDirectory);
    const auto status = file_system_.status(data);
    if (!status || status->kind != fs::FileStatus::Kind::directory) return true;
    const auto part = file_system_.status(fs::join(prefix_->path_of(name), container_directory(logical_rank)));
    if (!part || part->kind != fs::FileStatus::Kind::directory) return true;
    if (should_stop && should_stop()) return false;
    file_system_.remove(fs::join(prefix_->path_of(name), container_file(logical_rank)));
    return true;
  }

  /// Files that are not Kedge's stay and keep the directory.
  void clear_name(const std::string& name) override {
    prefix_->run_start().require_newest();
    if (prefix_->is_own_directory(name) && !prefix_->is_published(name)) {
      const std::string path = prefix_->path_of(name);
      const std::string data = fs::join(path, kDataDirectory);
      prefix_->plain_directory(name).remove_all();
      if (file_system_.status(data)) remove_containers(data);
      file_system_.remove(fs::join(path, temporary_name(kManifestFile)));
      file_system_.remove(fs::join(path, kPinFile));
      if (file_system_.list(path).empty()) file_system_.remove(path);
      file_system_.sync_directory(prefix_->path());
    }
    prefix_->unfinished_tags().unmark(name);
  }

  [[nodiscard]] Leftovers find_leftovers(const Id128& run_id) override {
    Leftovers left;
    for (const std::string& directory : prefix_->unfinished_tags().list()) {
      if (!parse_tag_directory_name(directory)) continue;
      const auto failure = attempt([&] {
        if (auto remains = find_leftover(directory)) left.commits.push_back(*std::move(remains));
      });
      if (!failure) continue;
      if (failure->code == ErrorCode::busy) throw Error(*failure);
      left.problems.push_back(compose("{}: {}", directory, to_string(*failure)));
    }
    // A cache that somebody may have removed: readers do without.
    (void)attempt([&] { prefix_->catalog().add_missing(list_own_commits(reader_, run_id)); });
    return left;
  }

  [[nodiscard]] bool is_pinned(const std::string& name) override {
    const auto status = file_system_.status(fs::join(prefix_->path_of(name), kPinFile));
    return status && status->kind == fs::FileStatus::Kind::file;
  }

  void set_pinned(const TagEntry& entry, bool pinned) override {
    prefix_->run_start().require_newest();
    const std::string directory = prefix_->path_of(entry.directory);
    const std::string path = fs::join(directory, kPinFile);
    if (pinned) {
      const auto file = file_system_.create(path, parse_mode(prefix_->options().mode) & kFileBits);
      if (file) file->sync();
    } else {
      file_system_.remove(path);
    }
    file_system_.sync_directory(directory);
  }

 private:
  /// Nothing if it is a commit, or the remains of one, which are not this function's to judge.
  [[nodiscard]] std::optional<Leftover> find_leftover(const std::string& directory) {
    const std::string path = prefix_->path_of(directory);
    // An old start may stand before its rename, its check behind it: it must not name a manifest whose containers go.
    if (file_system_.status(path)) file_system_.remove(fs::join(path, temporary_name(kManifestFile)));
    if (prefix_->is_published(directory) || !file_system_.status(path)) {
      prefix_->unfinished_tags().unmark(directory);
      return std::nullopt;
    }
    Leftover remains{directory, 0};
    const std::string data = fs::join(path, kDataDirectory);
    if (!prefix_->is_own_directory(directory) || !file_system_.status(data)) return remains;
    for (const std::string& part : file_system_.list(data)) {
      const auto status = file_system_.status(fs::join(data, part));
      if (!status || status->kind != fs::FileStatus::Kind::directory) continue;
      for (const std::string& name : file_system_.list(fs::join(data, part))) {
        if (const auto rank = rank_of_container(name)) remains.ranks = std::max(remains.ranks, rank->value + 1);
      }
    }
    return remains;
  }

  void remove_containers(const std::string& data) {
    for (const std::string& part : file_system_.list(data)) {
      const std::string directory = fs::join(data, part);
      const auto status = file_system_.status(directory);
      if (!status || status->kind != fs::FileStatus::Kind::directory) continue;
      for (const std::string& name : file_system_.list(directory)) {
        if (rank_of_container(name)) file_system_.remove(fs::join(directory, name));
      }
      if (file_system_.list(directory).empty()) file_system_.remove(directory);
    }
    if (file_system_.list(data).empty()) file_system_.remove(data);
  }

  std::shared_ptr<PosixPrefix> prefix_;
  fs::FileSystem& file_system_;
  PrefixReader& reader_;
};

}  // namespace

std::unique_ptr<PrefixRemover> make_posix_remover(std::shared_ptr<PosixPrefix> prefix, PrefixReader& reader) {
  return std::make_unique<PosixRemover>(std::move(prefix), reader);
}

}  // namespace kedge::persist
