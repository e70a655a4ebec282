// Opens another run's tags, or copied ones, as the origin of a new run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "kedge/selection.hpp"
#include "persist/prefix_storage.hpp"
#include "recovery/found_tag.hpp"
#include "recovery/holding.hpp"

namespace kedge::recovery {

/// A commit of which the ranks have opened all containers in place: each its own, or some of another number of ranks.
struct OpenedSource {
  CommitHead commit;
  std::uint64_t total_bytes = 0;
  std::string directory;
  std::unique_ptr<persist::PrefixReader> prefix;
  std::vector<Holding> holdings;
};

/// Opens Sources for one engine, and remembers damaged commits. All ranks must make the same calls.
class SourceRecovery {
 public:
  /// Opens a Source's prefix; throws io, not_found.
  using OpenPrefixStorage = std::function<std::unique_ptr<persist::PrefixReader>(const std::string& prefix)>;

  SourceRecovery(comm::Group group, OpenPrefixStorage open_prefix_storage, OtherRanks other_ranks, Log log)
      : group_(std::move(group)),
        open_prefix_storage_(std::move(open_prefix_storage)),
        other_ranks_(other_ranks),
        log_(std::move(log)) {}

  /// COLLECTIVE. Opens the Source's newest commit that every rank can open; if the Source's prefix is a tag directory,
  /// that commit. If listed commits are removed meanwhile, as by a running job that keeps few, it lists again, for some
  /// seconds at most. The commit stays outside of this run's stores, because it belongs to another run. Throws
  /// Error{not_found} if there is none, Error{unrecoverable} if none can be opened, Error{io} if the prefix cannot be
  /// listed.
  [[nodiscard]] OpenedSource open(const Source& source);

  /// Local. Excludes the commit of this prefix from later opens; this run's stores are not affected.
  void exclude(const std::string& prefix, const Id128& commit_id, std::string why) {
    excluded_[{prefix, commit_id}] = std::move(why);
  }

 private:
  [[nodiscard]] std::vector<FoundTag> look(const Source& source, const std::map<Id128, std::string>& given_up,
                                           std::set<std::string>& logged, Deadline list_again_until) const;
  [[nodiscard]] bool is_gone(const Source& source, const FoundTag& tag) const;

  comm::Group group_;
  OpenPrefixStorage open_prefix_storage_;
  OtherRanks other_ranks_;
  Log log_;
  std::map<std::pair<std::string, Id128>, std::string> excluded_;  ///< reasons, by prefix as given and commit
};

}  // namespace kedge::recovery
