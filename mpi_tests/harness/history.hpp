// A small application on a simulated job, and what must hold of its checkpoints wherever it was disturbed.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "harness/simulated_job.hpp"

namespace kedge::faults {

/// What the ranks of an application saw, over all its starts and whatever became of them. Thread-safe.
class Ledger {
 public:
  void begun(int step);
  void returned(int step);
  /// On any rank, its level was `protected`.
  void is_protected(int step);
  /// The commit of this step is persistent.
  void is_persistent(int step);
  /// commit or create threw: the step must not be found again.
  void failed(int step);
  void problem(std::string text);

  /// 0 if there is none. `returned` means: on any rank.
  [[nodiscard]] int newest_begun() const;
  [[nodiscard]] int newest_returned() const;
  [[nodiscard]] int newest_protected() const;
  [[nodiscard]] int newest_persistent() const;
  [[nodiscard]] bool may_be_opened(int step) const;
  [[nodiscard]] std::vector<std::string> problems() const;

 private:
  mutable std::mutex mutex_;
  std::set<int> begun_;
  std::set<int> returned_;
  std::set<int> protected_;
  std::set<int> persistent_;
  std::vector<std::string> problems_;
};

/// create, save, commit of a state that depends on rank and step; every third step has one region more.
void checkpoint(Engine& engine, int rank, int step, Ledger& ledger, std::size_t more_bytes = 0);

/// open, load and compare, close. The step that was opened, which then counts as returned; 0 if there was nothing.
int open_and_check(Engine& engine, int rank, Ledger& ledger, const Selection& selection = latest);

/// A whole start of the application: open, then `count` checkpoints after what was opened.
void run_application(RankScope& scope, int count, Ledger& ledger, bool finalize);

/// After a disturbed start: what lies on the disk, what an undisturbed start opens, and that it can go on. All
/// that is wrong, the ledger's problems included; empty if all is well.
[[nodiscard]] std::vector<std::string> check_after_crash(SimulatedJob& job, Ledger& ledger);

/// Containers that claim to be sealed and are not what was sealed.
[[nodiscard]] std::vector<std::string> half_made_containers(SimulatedJob& job);

/// How the ranks ended that were not the victim (-1: all may have died): they returned or timed out.
[[nodiscard]] std::vector<std::string> check_survivors(const std::vector<testing::RankOutcome>& outcomes, int victim);

/// One line per problem, for the message of an assertion.
[[nodiscard]] std::string joined(const std::vector<std::string>& lines);

}  // namespace kedge::faults
