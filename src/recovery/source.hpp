// Another run's tags, or copied ones, as where a new run begins.
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

namespace kedge::recovery {

/// A commit of which every rank has its container open, where it lies.
struct OpenedSource {
  CommitHead commit;
  std::uint64_t total_bytes = 0;
  persist::OpenedContainer container;  ///< this rank's
};

/// Opens Sources. Of one engine: it remembers what was found damaged. Calls must be the same on every rank.
class SourceRecovery {
 public:
  /// The place that a Source names; throws io, not_found.
  using OpenPrefixStorage = std::function<std::unique_ptr<persist::PrefixStorage>(const std::string& prefix)>;

  SourceRecovery(comm::Group group, OpenPrefixStorage open_prefix_storage, Log log)
      : group_(std::move(group)), open_prefix_storage_(std::move(open_prefix_storage)), log_(std::move(log)) {}

  /// COLLECTIVE. The newest commit that the Source names and that every rank can open. A Source whose prefix is itself
  /// a tag directory names that one. Where what was listed is removed meanwhile, as beside a job that flushes and keeps
  /// few, it lists again, for some seconds at most. Nothing of it comes into this run's stores: it belongs to another
  /// run. Throws Error{not_found} if it names none, Error{unrecoverable} if none that it names can be opened, Error{io}
  /// if its prefix cannot be listed.
  [[nodiscard]] OpenedSource open(const Source& source);

  /// Local. The commit must not be opened again from this prefix. That says nothing about this run's stores.
  void exclude(const std::string& prefix, const Id128& commit_id, std::string why) {
    excluded_[{prefix, commit_id}] = std::move(why);
  }

 private:
  [[nodiscard]] std::vector<FoundTag> look(const Source& source, const std::map<Id128, std::string>& given_up,
                                           std::set<std::string>& logged, Deadline list_again_until) const;
  [[nodiscard]] bool is_gone(const Source& source, const FoundTag& tag) const;

  comm::Group group_;
  OpenPrefixStorage open_prefix_storage_;
  Log log_;
  std::map<std::pair<std::string, Id128>, std::string> excluded_;  ///< by prefix as it was given; and why
};

}  // namespace kedge::recovery
