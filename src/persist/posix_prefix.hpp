// The prefix on a parallel filesystem: a commit is a directory, and the rename of its manifest is the commit.
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

/// The prefix of a run, whose path is canonical. `start` is rank 0's and must outlive the result; where it is null,
/// only the reader and PrefixWriter::put can be called. Nothing is read or written yet.
[[nodiscard]] PrefixStorage posix_prefix_storage(std::shared_ptr<fs::FileSystem> file_system, std::string prefix,
                                                 Options::Persistent options, const RunStart* start);

/// Another run's prefix, or a single tag directory, as a Source gives it: list() has the one commit as "." then, and
/// throws io if somebody who is not trusted can replace what is in it. Throws Error{io} if there is nothing.
[[nodiscard]] std::unique_ptr<PrefixReader> posix_source_reader(std::shared_ptr<fs::FileSystem> file_system,
                                                                const std::string& path, Options::Persistent options);

/// For the reader, writer and remover of one prefix: its names, and who changes them.
class PosixPrefix {
 public:
  PosixPrefix(std::shared_ptr<fs::FileSystem> file_system, std::string path, Options::Persistent options,
              const RunStart* start);

  [[nodiscard]] fs::FileSystem& file_system() const noexcept { return *file_system_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const Options::Persistent& options() const noexcept { return options_; }
  /// The path of a tag directory.
  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] bool is_published(std::string_view name) const;
  /// Whether it is a directory of this user's.
  [[nodiscard]] bool is_own_directory(std::string_view name) const;
  [[nodiscard]] PlainDirectory plain(std::string_view name) const { return {*file_system_, path_of(name), options_}; }

  /// Names come into being and go through rank 0 alone, and only as long as no later start has begun.
  [[nodiscard]] const RunStart& start() const;
  [[nodiscard]] UnfinishedTags unfinished() const { return UnfinishedTags(start()); }
  /// One for as long as this lives: it remembers how much of the file is out of date.
  [[nodiscard]] TagCatalog& catalog();

 private:
  std::shared_ptr<fs::FileSystem> file_system_;
  std::string path_;
  Options::Persistent options_;
  const RunStart* start_;
  std::unique_ptr<TagCatalog> catalog_;  ///< null until it is needed
};

inline constexpr std::string_view kItself = ".";  ///< a tag directory that is looked at as a place of its own

/// Of a file that is not complete yet.
[[nodiscard]] inline std::string new_name(std::string_view name) { return std::string(name).append(".new"); }

[[nodiscard]] std::unique_ptr<PrefixWriter> make_posix_writer(std::shared_ptr<PosixPrefix> prefix);
[[nodiscard]] std::unique_ptr<PrefixRemover> make_posix_remover(std::shared_ptr<PosixPrefix> prefix,
                                                                PrefixReader& reader);

}  // namespace kedge::persist
