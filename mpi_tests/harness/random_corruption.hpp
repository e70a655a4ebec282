// What happens to a simulated job between its starts and in them: ranks move, nodes are lost, files are damaged.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/random_choices.hpp"
#include "harness/simulated_job.hpp"

namespace kedge::faults {

class RandomCorruption {
 public:
  /// All that happens is told in `story`, one line each.
  RandomCorruption(SimulatedJob& job, int ranks_per_node, RandomChoices& choices, std::string& story);

  /// The nodes that the job runs on, each once.
  [[nodiscard]] std::set<std::string> nodes() const;
  [[nodiscard]] int most_ranks_on_a_node() const;

  /// Perhaps ranks change places, or another node takes the place of one.
  void move_ranks();
  void lose_nodes();
  void damage_files();
  /// While engines run. A file that is replaced is a new one, as whoever has it open would notice.
  void damage_files_in_use();
  /// Damage that strikes in the next start: after a file was found good, and before it is used.
  void arm_files();
  /// A rank dies, or its disk fails, somewhere in the next start.
  void plan_fault();
  /// Files may later be set back to what they are now.
  void remember();

 private:
  void tell(const std::string& line) { story_ += line + "\n"; }
  [[nodiscard]] std::string some_file();
  void flip(const std::string& path);
  void cut(const std::string& path, std::uint64_t size_bytes);
  void copy_another_to(const std::string& path);
  void set_back(const std::string& path);
  void arm(const std::string& path);
  void place_ranks() { job_.nodes = node_of_rank_; }

  SimulatedJob& job_;
  RandomChoices& choices_;
  std::string& story_;
  std::vector<std::string> node_of_rank_;
  std::vector<std::string> away_;  ///< nodes that the job left, with what their stores hold
  int next_node_ = 0;
  std::vector<FaultyDisk::Snapshot> older_;
};

}  // namespace kedge::faults
