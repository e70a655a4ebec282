// The prefix on a parallel filesystem: a commit is a directory, and the rename of its manifest is the commit.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "persist/tier.hpp"

namespace kedge::persist {

class PosixTier final : public Tier {
 public:
  /// `prefix` is canonical. Nothing is read or written yet.
  PosixTier(std::shared_ptr<fs::FileSystem> file_system, std::string prefix, Options::Persistent options)
      : PosixTier(std::move(file_system), std::move(prefix), std::move(options), Of::run) {}

  /// Another run's prefix, or a single tag directory, as a Source gives it: list() has the one commit as "." then. To
  /// be looked at only, and only if nobody who is not trusted may replace what is in it. Throws Error{io} if there is
  /// nothing.
  [[nodiscard]] static std::unique_ptr<PosixTier> of_source(std::shared_ptr<fs::FileSystem> file_system,
                                                            const std::string& path, Options::Persistent options);

  [[nodiscard]] const std::string& where() const noexcept override { return prefix_; }
  [[nodiscard]] TagList list() override;
  [[nodiscard]] TagEntry read(const std::string& name) override;
  [[nodiscard]] bool is_published(const std::string& name) override;
  [[nodiscard]] bool is_own(const TagEntry& entry) override;
  void require_trusted(const TagEntry& entry) override;
  [[nodiscard]] OpenedContainer open(const std::string& name, const CommitHead& commit,
                                     LogicalRank logical_rank) override;

  /// The path of a tag directory.
  [[nodiscard]] std::string path_of(std::string_view name) const;

 private:
  enum class Of : std::uint8_t { run, source };
  PosixTier(std::shared_ptr<fs::FileSystem> file_system, std::string prefix, Options::Persistent options, Of of)
      : file_system_(std::move(file_system)), prefix_(std::move(prefix)), options_(std::move(options)), of_(of) {}

  std::shared_ptr<fs::FileSystem> file_system_;
  std::string prefix_;
  Options::Persistent options_;
  Of of_;
};

}  // namespace kedge::persist
