// Markers of tag directories that a start is making or removing: a later start removes those that are not commits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "persist/run_start.hpp"

namespace kedge::persist {

/// The markers of one run. Used by one rank. All calls are local and throw Error{io | no_space} when the prefix cannot
/// be used.
class UnfinishedTags {
 public:
  /// `start` must outlive this.
  explicit UnfinishedTags(const RunStart& start) : start_(start) {}

  /// Marks a directory; on stable storage when it returns. Throws Error{busy} if a later start has begun.
  void mark(std::string_view directory) const;
  void unmark(std::string_view directory) const;
  /// Returns the tag directories that this start or an earlier one left unfinished. Throws Error{busy} if a later start
  /// has begun.
  [[nodiscard]] std::vector<std::string> list() const;

 private:
  const RunStart& start_;
};

}  // namespace kedge::persist
