// The prefix on a parallel filesystem: a commit is a directory, and the rename of its manifest is the commit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "persist/plain_directory.hpp"
#include "persist/prefix_storage.hpp"
#include "persist/run_start.hpp"
#include "persist/tag_catalog.hpp"
#include "persist/unfinished_tags.hpp"

namespace kedge::persist {

class PosixPrefixStorage final : public PrefixStorage {
 public:
  /// `prefix` is canonical. `start` is rank 0's, without which only look and put can be called; it must outlive this.
  /// Nothing is read or written yet.
  PosixPrefixStorage(std::shared_ptr<fs::FileSystem> file_system, std::string prefix, Options::Persistent options,
                     const RunStart* start = nullptr)
      : PosixPrefixStorage(std::move(file_system), std::move(prefix), std::move(options), start, Of::run) {}

  /// Another run's prefix, or a single tag directory, as a Source gives it: list() has the one commit as "." then. Read
  /// only; list() throws io if somebody who is not trusted can replace what is in it. Throws Error{io} if there is
  /// nothing.
  [[nodiscard]] static std::unique_ptr<PosixPrefixStorage> of_source(std::shared_ptr<fs::FileSystem> file_system,
                                                                     const std::string& path,
                                                                     Options::Persistent options);

  [[nodiscard]] const std::string& where() const noexcept override { return prefix_; }
  [[nodiscard]] TagList list() override;
  [[nodiscard]] TagEntry read(const std::string& name) override;
  [[nodiscard]] bool is_published(const std::string& name) override;
  [[nodiscard]] bool is_own(const TagEntry& entry) override;
  void require_trusted(const TagEntry& entry) override;
  [[nodiscard]] OpenedContainer open(const std::string& name, const CommitHead& commit,
                                     LogicalRank logical_rank) override;

  [[nodiscard]] fs::ChosenIo choose_io(Io io) override;
  void enable_direct_writes() noexcept override { direct_ = true; }
  [[nodiscard]] bool is_complete(const TagEntry& entry) override;
  [[nodiscard]] std::uint64_t missing_bytes(const TagEntry& entry, std::uint64_t manifest_bytes,
                                            const PlainFiles& plain) override;
  void begin(const TagEntry& entry, std::uint64_t manifest_bytes, const PlainFiles& plain) override;
  [[nodiscard]] std::uint32_t put(const TagEntry& entry, LogicalRank logical_rank, const Content& content) override;
  void write_plain_file(const TagEntry& entry, LogicalRank logical_rank, const std::string& name,
                        const std::function<void(fs::ByteAccess& to)>& write) override;
  [[nodiscard]] std::string publish(const TagEntry& entry, std::span<const std::byte> manifest) override;
  void discard(const TagEntry& entry) override;
  void retract(const TagEntry& entry) override;
  bool remove_container(const std::string& name, LogicalRank logical_rank, const fs::ShouldStop& enough) override;
  void clear(const std::string& name) override;
  [[nodiscard]] Leftovers leftovers(const Id128& run_id) override;
  [[nodiscard]] bool is_pinned(const std::string& name) override;
  void set_pinned(const TagEntry& entry, bool pinned) override;

  /// The path of a tag directory.
  [[nodiscard]] std::string path_of(std::string_view name) const;

 private:
  enum class Of : std::uint8_t { run, source };
  PosixPrefixStorage(std::shared_ptr<fs::FileSystem> file_system, std::string prefix, Options::Persistent options,
                     const RunStart* start, Of of)
      : file_system_(std::move(file_system)),
        prefix_(std::move(prefix)),
        options_(std::move(options)),
        start_(start),
        of_(of) {}

  [[nodiscard]] PlainDirectory plain(std::string_view name) const { return {*file_system_, path_of(name), options_}; }
  [[nodiscard]] const RunStart& start() const;
  [[nodiscard]] UnfinishedTags unfinished() const { return UnfinishedTags(start()); }
  [[nodiscard]] TagCatalog& catalog();
  void require_space(const TagEntry& entry, std::uint64_t manifest_bytes, const PlainFiles& plain) const;
  void make_directory(const std::string& path) const;
  void write_manifest(const TagEntry& entry, std::span<const std::byte> manifest);
  void write_latest(const std::string& directory);
  [[nodiscard]] std::optional<Leftover> find_leftover(const std::string& directory);
  [[nodiscard]] bool is_own_directory(const std::string& directory);
  void remove_containers(const std::string& data);

  std::shared_ptr<fs::FileSystem> file_system_;
  std::string prefix_;
  Options::Persistent options_;
  const RunStart* start_;
  std::unique_ptr<TagCatalog> catalog_;  ///< null until it is needed
  Of of_;
  bool direct_ = false;           ///< containers are written past the page cache
  bool path_is_durable_ = false;  ///< every name on the way to the prefix
};

}  // namespace kedge::persist
