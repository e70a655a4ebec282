// A random history of a simulated job: starts that commit and open, and harm between them and in them. After each start
// an oracle that reads the disk says what must have been opened, and what must be there now.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "harness/disk_oracle.hpp"
#include "harness/random_choices.hpp"
#include "harness/random_corruption.hpp"
#include "harness/random_start.hpp"
#include "harness/simulated_job.hpp"

namespace kedge::faults {

/// Ranks always move and die, disks fail, and files are lost and damaged between starts.
enum class Corruption : std::uint8_t {
  between_starts,  ///< nothing more: the oracle knows what each start must open
  while_it_runs,   ///< also while engines run, which then open again
  behind_checks,   ///< also after a file was verified: nothing wrong is loaded, whatever is opened
};
void PrintTo(Corruption harm, std::ostream* stream);

class RandomHistory {
 public:
  RandomHistory(std::uint64_t seed, Corruption harm);

  /// Stops after the first start that fails the test.
  void run();
  /// What happened, and what the engines logged.
  [[nodiscard]] std::string story() const;

 private:
  /// What the disk held before a start, and what was asked of it.
  struct Case {
    RandomStart start;
    bool faulty = false;  ///< a death or an error was planned
    std::vector<RemainingCommit> held;
    std::optional<RemainingCommit> expected;            ///< to be opened
    std::vector<std::optional<RemainingCommit>> again;  ///< likewise by each later open
  };

  void configure();
  void draw_redundancy();
  [[nodiscard]] RandomStart draw_start(const std::vector<RemainingCommit>& held);
  void run_one_start(const RandomStart& start, bool faulty, const std::vector<RemainingCommit>& held);
  [[nodiscard]] std::optional<RemainingCommit> expected_of(const std::vector<RemainingCommit>& held,
                                                           const Selection& selection) const;
  void corrupt_between_opens(Case& now);

  void judge(const Case& now, const Started& started);
  void judge_first_open(const Case& now, const RankObservation& saw) const;
  void judge_later_opens(const Case& now, const RankObservation& saw) const;
  void judge_stores(const Case& now, const Started& started, bool exact);
  void record_discarded(const Case& now, const RankObservation& saw);

  /// What a start with this configuration opens or commits is protected.
  [[nodiscard]] bool protects() const;
  void tell(const std::string& line) { told_ += line + "\n"; }

  std::uint64_t seed_;
  Corruption kind_;
  RandomChoices choices_;
  std::string told_;
  SimulatedJob job_;
  RandomCorruption corruption_;
  DiskOracle oracle_;
  int next_step_ = 1;
  bool armed_ = false;  ///< a file may change when somebody uses it: the disk does not tell what can be had
  bool ended_ = false;
};

}  // namespace kedge::faults
