// What a commit costs with few and with many checkpoints on the prefix.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kedge/engine.hpp"
#include "recorder.hpp"
#include "table.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// COLLECTIVE calls throw on all ranks.
class TagsRows {
 public:
  TagsRows(const Workplace& workplace, std::uint64_t tags);

  /// Local. Adds the rows that round() and lower() record.
  static void add_to(Table& table);
  /// COLLECTIVE. Makes the checkpoints: few in one run, as many as asked for in the other. Takes minutes.
  void fill();
  /// COLLECTIVE. Commits in turns to the one and the other.
  void round(Recorder& recorder);
  /// COLLECTIVE. Then all but a few may go at once: the slowest of some commits.
  void lower(Recorder& recorder, std::uint64_t rounds);

 private:
  struct Run {
    std::string name;
    std::uint64_t tags = 0;  ///< that it has
    std::optional<kedge::Engine> engine = {};
  };
  void start(Run& run, std::uint64_t keep) const;
  void commit(Run& run);

  const Workplace& workplace_;
  std::uint64_t wanted_;
  Run few_{"few"};
  Run many_{"many"};
};

}  // namespace kedge_bench
