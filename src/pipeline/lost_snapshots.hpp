// Snapshots that could not be sealed, for whoever asks later what became of them.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>

#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::pipeline {

/// From any thread.
class LostSnapshots {
 public:
  struct Lost {
    CommitHead commit;
    Failure failure;  ///< why
  };

  /// Newer than those before.
  void add(const CommitHead& commit, const Failure& failure);
  /// There is a newer commit of this tag.
  void forget(std::string_view tag);
  [[nodiscard]] std::optional<Lost> newest() const;
  /// The newest of this tag.
  [[nodiscard]] std::optional<Lost> find(std::string_view tag) const;

 private:
  static constexpr std::size_t kMost = 16;  ///< a store that stays full loses one after the other

  mutable std::mutex mutex_;
  std::deque<Lost> lost_;  ///< newest first
};

}  // namespace kedge::pipeline
