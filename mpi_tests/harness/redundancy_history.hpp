// Histories whose checkpoints are protected: what must hold of them wherever they were disturbed, with and without a
// node that is lost afterwards.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/history.hpp"

namespace kedge::faults {

/// Ranks in order over nodes, protected by a scheme.
struct Layout {
  std::string name;
  Scheme scheme = Scheme::xor_;
  int ranks = 3;
  std::uint32_t ranks_per_node = 1;
  std::uint32_t keep = 1;    ///< store.keep
  std::uint64_t every = 1;   ///< redundancy.every
  bool block = false;        ///< stores on block storage, not durable
  std::uint32_t parity = 2;  ///< of rs

  [[nodiscard]] int nodes() const { return ranks / static_cast<int>(ranks_per_node); }
  /// For what GoogleTest prints.
  friend void PrintTo(const Layout& layout, std::ostream* stream) { *stream << layout.name; }
};

[[nodiscard]] DiskOptions disk_of(const Layout& layout);
void use(SimulatedJob& job, const Layout& layout);
/// All that the store of the node holds is gone.
void lose_node(SimulatedJob& job, int node);

/// A place at which a start is disturbed: operation n of a rank, alone or with all.
struct Point {
  int rank = 0;
  std::uint64_t n = 0;
  bool together = false;
  [[nodiscard]] std::uint64_t drawn(std::uint64_t below) const;  ///< a choice that the point does not name
};
[[nodiscard]] std::string describe(const Point& point);
void plan(SimulatedJob& job, const Point& point);
/// A node of the layout, another one for other points.
[[nodiscard]] int some_node(const Point& point, const Layout& layout);

enum class Deaths : std::uint8_t { alone, together, both };

/// Every operation of every rank; without KEDGE_TEST_FULL a sample of one in `one_in`, drawn
/// by KEDGE_TEST_SEED (1). Prints how many.
[[nodiscard]] std::vector<Point> points(std::string_view what, const std::vector<std::uint64_t>& operations,
                                        std::uint64_t one_in, Deaths deaths = Deaths::both);

/// Parity and descriptors that claim to be sealed and are not what was sealed.
[[nodiscard]] std::vector<std::string> half_made_set_files(const SimulatedJob& job);
/// More parity files or descriptors of a rank on the disk than `at_most`.
[[nodiscard]] std::vector<std::string> too_many_set_files(const SimulatedJob& job, std::size_t at_most);

/// What an undisturbed start came to, the same on every rank or `problems` says so.
struct Recovery {
  int step = 0;                ///< what was opened, byte for byte; 0: open found nothing
  bool unrecoverable = false;  ///< thrown by open
  std::vector<std::string> problems;
};
/// Opens; then, if that did not throw, commits step `next`, which must be protected, and opens that.
[[nodiscard]] Recovery recover(SimulatedJob& job, int next);

/// After a disturbed start: step `least`, or a newer one, is there and the job can go on; if that is 0, at least nobody
/// begins from zero after a commit returned. Empty if all is well.
[[nodiscard]] std::vector<std::string> check_recovery(SimulatedJob& job, const Ledger& ledger, int least);
/// No node was lost since: what commit returned is there.
[[nodiscard]] std::vector<std::string> check_nothing_lost(SimulatedJob& job, const Ledger& ledger);
/// A node was lost since: what was protected is there.
[[nodiscard]] std::vector<std::string> check_after_loss(SimulatedJob& job, const Ledger& ledger);

/// Ranks 0, 1, ... as they are placed by the layout, and moved: every rank on another node, or, where a node has two
/// ranks, so that members of one set come together on one.
[[nodiscard]] std::vector<std::string> first_nodes(const Layout& layout);
[[nodiscard]] std::vector<std::string> other_nodes(const Layout& layout);

}  // namespace kedge::faults
