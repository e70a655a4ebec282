// Snapshots that could not be written to the stores, for whoever asks later what became of them.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::pipeline {

/// The log's line about a loss.
[[nodiscard]] std::string lost_snapshot_warning(const commits::Ledger& ledger, const CommitHead& commit,
                                                const Failure& failure);

/// Losses are noted and looked up from any thread; what the application was told is the application's thread's.
class LostSnapshots {
 public:
  struct Lost {
    CommitHead commit;
    Failure failure;  ///< why
  };

  explicit LostSnapshots(const commits::Ledger& ledger) : ledger_(ledger) {}

  /// It is newer than those that were lost before.
  void add(const CommitHead& commit, const Failure& failure);
  /// There is a newer commit of this tag.
  void forget(std::string_view tag);
  /// Nothing, unless the newest checkpoint of this tag is one that was lost.
  [[nodiscard]] std::optional<Lost> find(std::string_view tag) const;

  /// Another snapshot was taken.
  void begin(const Tag& tag);
  /// The application was told what became of this tag, or does not want to know of any.
  void told(std::string_view tag) noexcept;
  void told_of_all() noexcept { is_told_ = true; }
  /// That the newest checkpoint is lost, if nobody has told the application.
  [[nodiscard]] std::optional<Failure> not_told() const;

 private:
  static constexpr std::size_t kMost = 16;  ///< a store that stays full loses one after the other

  [[nodiscard]] std::optional<Lost> newest() const;
  [[nodiscard]] std::optional<Lost> newest_of(std::string_view tag) const;

  const commits::Ledger& ledger_;
  mutable std::mutex mutex_;
  std::deque<Lost> lost_;  ///< newest first
  Tag last_tag_;           ///< of the last snapshot
  bool is_told_ = false;   ///< what became of that
};

}  // namespace kedge::pipeline
