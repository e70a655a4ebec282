// The prefix on a parallel filesystem: a commit is a directory; the rename of its manifest commits it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "persist/plain_directory.hpp"
#include "persist/prefix_storage.hpp"
#include "persist/run_start.hpp"
#include "persist/tag_catalog.hpp"
#include "persist/unfinished_tags.hpp"

namespace kedge::persist {

/// Returns the prefix of a run, whose path is canonical. `start` is rank 0's and must outlive the result; if it is
/// null, only the reader and PrefixWriter::put_container may be called. Reads and writes nothing yet.
[[nodiscard]] PrefixStorage posix_prefix_storage(std::shared_ptr<fs::FileSystem> file_system, std::string prefix,
                                                 Options::Persistent options, const RunStart* start);

/// Returns a reader of another run's prefix, or of a single tag directory, as a Source gives it: list_commits() then
/// has the one commit as ".", and throws io if a user who is not trusted can replace what is in it. Throws Error{io} if
/// there is nothing.
[[nodiscard]] std::unique_ptr<PrefixReader> posix_source_reader(std::shared_ptr<fs::FileSystem> file_system,
                                                                const std::string& path, Options::Persistent options);

/// The prefix's names, and who changes them: shared by its reader, writer and remover.
class PosixPrefix {
 public:
  PosixPrefix(std::shared_ptr<fs::FileSystem> file_system, std::string path, Options::Persistent options,
              const RunStart* run_start);

  [[nodiscard]] fs::FileSystem& file_system() const noexcept { return *file_system_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const Options::Persistent& options() const noexcept { return options_; }
  /// The path of a tag directory.
  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] bool is_published(std::string_view name) const;
  /// Whether the name is a directory of this user.
  [[nodiscard]] bool is_own_directory(std::string_view name) const;
  [[nodiscard]] PlainDirectory plain_directory(std::string_view name) const {
    return {*file_system_, path_of(name), options_};
  }

  /// Names come into being and go through rank 0 alone, and only as long as no later start has begun.
  [[nodiscard]] const RunStart& run_start() const;
  [[nodiscard]] UnfinishedTags unfinished_tags() const { return UnfinishedTags(run_start()); }
  /// Returns the catalog of this run. There is one: it remembers how much of the file is out of date.
  [[nodiscard]] TagCatalog& catalog();

 private:
  std::shared_ptr<fs::FileSystem> file_system_;
  std::string path_;
  Options::Persistent options_;
  const RunStart* run_start_;
  std::unique_ptr<TagCatalog> catalog_;  ///< null until it is needed
};

/// Name of a tag directory that is opened as a prefix of its own.
inline constexpr std::string_view kSelfDirectory = ".";

/// Returns the name of a file until it is complete.
[[nodiscard]] inline std::string temporary_name(std::string_view name) { return std::string(name).append(".new"); }

[[nodiscard]] std::unique_ptr<PrefixWriter> make_posix_writer(std::shared_ptr<PosixPrefix> prefix);
[[nodiscard]] std::unique_ptr<PrefixRemover> make_posix_remover(std::shared_ptr<PosixPrefix> prefix,
                                                                PrefixReader& reader);

}  // namespace kedge::persist
