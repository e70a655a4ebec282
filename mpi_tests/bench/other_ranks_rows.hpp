// What a restart on another number of ranks costs, against one on as many ranks as saved, and against plain reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "counting_file_system.hpp"
#include "data.hpp"
#include "kedge/engine.hpp"
#include "recorder.hpp"
#include "table.hpp"
#include "team.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// An array in rows, saved by some ranks and restored by others. COLLECTIVE calls throw on all ranks.
class OtherRanksRows {
 public:
  OtherRanksRows(const Arguments& arguments, const Workplace& workplace, Buffers& buffers, int rank, int ranks);

  /// Whether there are enough ranks.
  [[nodiscard]] static bool are_possible(int ranks) noexcept { return ranks >= 2; }
  /// Local. Adds the rows that round() records.
  static void add_to(Table& table, const Arguments& arguments, int ranks);
  /// COLLECTIVE. Each row once; every byte that is loaded is compared.
  void round(Recorder& recorder);

 private:
  /// Of one way from N ranks to M. They act as two nodes, which have all containers, where there are enough of them.
  struct Case {
    std::string name;
    const Team& saved_by;
    const Team& restored_by;
    int saved_per_node = 1;
    int restored_per_node = 1;
    std::uint64_t words = 0;  ///< of the array
  };
  struct Spent {
    double s = 0;
    double bytes = 0;  ///< that were read, of all ranks, for each byte of the array
  };
  /// Rows of the array.
  struct Share {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };

  void record(Recorder& recorder, const Case& one);
  void record_prefix(Recorder& recorder);
  void save(const Case& one, bool to_prefix);
  [[nodiscard]] Spent restart(const Case& one, const Team& team, int per_node);
  [[nodiscard]] Spent faster(const Case& one, const Team& team, int per_node);
  [[nodiscard]] double plain_read(const Team& team);
  [[nodiscard]] std::optional<kedge::Engine> start(const Case& one, const Team& team, int per_node, bool to_prefix);
  [[nodiscard]] Share share(const Case& one, const Team& team) const;

  const Arguments& arguments_;
  const Workplace& workplace_;
  Buffers& buffers_;
  int rank_;
  Team all_;
  Team one_less_;
  Team half_;
  Case fewer_;
  Case more_;
  Case prefix_;
  std::shared_ptr<CountingFileSystem> files_;
  std::uint64_t number_ = 0;  ///< of what is saved
};

}  // namespace kedge_bench
