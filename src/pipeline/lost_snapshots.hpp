// Remembers snapshots that could not be written to the stores, for later calls about their tags.
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

[[nodiscard]] std::string lost_snapshot_warning(const commits::Ledger& ledger, const CommitHead& commit,
                                                const Failure& failure);

/// Losses may be added and found from any thread; the rest is for the application's thread.
class LostSnapshots {
 public:
  struct Lost {
    CommitHead commit;
    Failure failure;  ///< why
  };

  explicit LostSnapshots(const commits::Ledger& ledger) : ledger_(ledger) {}

  /// Adds a loss that is newer than all earlier ones.
  void add(const CommitHead& commit, const Failure& failure);
  /// A newer commit of this tag exists.
  void forget(std::string_view tag);
  /// The loss, if the newest checkpoint of this tag is lost.
  [[nodiscard]] std::optional<Lost> find(std::string_view tag) const;

  void begin(const Tag& tag);
  /// The application learned what became of this tag.
  void mark_reported(std::string_view tag) noexcept;
  void mark_all_reported() noexcept { is_reported_ = true; }
  /// The failure if the newest checkpoint is lost and the application has not learned it yet.
  [[nodiscard]] std::optional<Failure> unreported() const;

 private:
  static constexpr std::size_t kMost = 16;  ///< enough for a store that stays full

  [[nodiscard]] std::optional<Lost> newest() const;
  [[nodiscard]] std::optional<Lost> newest_of(std::string_view tag) const;

  const commits::Ledger& ledger_;
  mutable std::mutex mutex_;
  std::deque<Lost> lost_;     ///< newest first
  Tag last_tag_;              ///< of the newest snapshot
  bool is_reported_ = false;  ///< the application knows its outcome
};

}  // namespace kedge::pipeline
