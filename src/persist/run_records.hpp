// The run's records on the prefix: who the run is, which start of it is the newest, that commits exist.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::persist {

/// Name of a run that was given none: the communicator's name and a hash of the canonical prefix, so that the
/// same job started in the same place finds its own checkpoints. Pure.
[[nodiscard]] std::string default_run_name(std::string_view canonical_prefix, std::string_view communicator_name);

/// Records of one run below `<prefix>/.kedge/<run>/`. Used by one rank; all calls are local and throw
/// Error{io | no_space} when the prefix cannot be used. Everything written is on stable storage when the call
/// returns.
class RunRecords {
 public:
  /// Makes the prefix and the run's directory if they are missing. An empty `run` takes the default name. Throws
  /// io if a directory belongs to somebody else or can be written by others.
  RunRecords(std::shared_ptr<fs::FileSystem> file_system, const std::string& prefix, std::string run,
             std::string_view communicator_name);

  [[nodiscard]] const std::string& run() const noexcept { return run_; }
  /// Canonical.
  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }

  /// Takes the next incarnation by exclusive create: greater than every one before.
  std::uint64_t take_incarnation();
  /// This start has its place on all stores: from now on older ones may change nothing here. A start that only
  /// waits for the locks of an older one, or was killed while it waited, supersedes nobody. Throws Error{busy} if
  /// a later one has begun.
  void begin_incarnation();
  /// True while no later start has begun.
  [[nodiscard]] bool is_newest_incarnation();
  /// Gives the incarnation back: this start came to nothing and must not stop the one that runs.
  void withdraw_incarnation();

  /// Leaves a number, as 32 hex digits in `nonce-<incarnation>`, for other ranks to see; not on stable storage.
  void write_nonce(const Id128& nonce);
  /// Removes those of this start and of all before it. Once this one has begun: an older start that is not superseded
  /// may still be looking for its own.
  void remove_nonces();

  /// The run's UUID; nothing before the first start wrote it.
  [[nodiscard]] std::optional<Id128> run_id();
  void write_run_id(const Id128& run_id);

  /// A commit of this run has returned at least once.
  [[nodiscard]] bool has_first_commit();
  void note_first_commit(const Id128& commit_id);
  /// The run's commits were removed on purpose: has_first_commit() is false again. Throws Error{busy} if a later
  /// start has begun: then they are not this one's to forget.
  void forget_commits();

  /// A first manifest was renamed into place.
  [[nodiscard]] bool has_first_manifest();
  void note_first_manifest(const Id128& commit_id);

  /// This start makes or removes a tag directory: whatever of it is no commit when the start has ended is nobody's.
  /// Throws Error{busy} if a later start has begun.
  void note_unfinished(std::string_view directory);
  void forget_unfinished(std::string_view directory);
  /// Tag directories that this start or one before left unfinished. Throws Error{busy} if a later start has begun.
  [[nodiscard]] std::vector<std::string> unfinished();

  /// Throws Error{busy} if a later start has begun: then this one commits and removes nothing on the prefix any more.
  void require_newest_incarnation();
  /// Where the run's records lie.
  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }

  /// Commits that were abandoned by open(…, Newer::discard) are never offered again.
  [[nodiscard]] bool is_discarded(const Id128& commit_id);
  void discard(const Id128& commit_id);

 private:
  [[nodiscard]] std::string record(std::string_view name) const { return fs::join(directory_, name); }
  /// The numbers of all records called `kind` and a number.
  [[nodiscard]] std::vector<std::uint64_t> numbers(std::string_view kind);
  [[nodiscard]] std::uint64_t newest(std::string_view kind);
  /// Writes a small file once; a name that is taken is left as it is.
  void write_once(const std::string& path, std::string_view text);

  std::shared_ptr<fs::FileSystem> file_system_;
  std::string prefix_;
  std::string run_;
  std::string directory_;
  std::uint64_t incarnation_ = 0;
};

}  // namespace kedge::persist
