// Several ranks in one process, as threads: for jobs that have fewer processes than the commit has ranks.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/hosted/process_link.hpp"
#include "kedge/transport.hpp"

namespace kedge::comm {

class InProcessMessages;

/// The ranks that this process hosts. Their messages to ranks of this process go through memory, the others through a
/// link, by the thread that runs run(): the message layer sees one thread.
class HostedRanks {
 public:
  /// Local. `hosts` gives the process of each rank, the same in every process. The link must outlive it; null: there is
  /// one process.
  HostedRanks(std::vector<int> hosts, ProcessLink* link);
  ~HostedRanks();
  HostedRanks(const HostedRanks&) = delete;
  HostedRanks& operator=(const HostedRanks&) = delete;

  /// In ascending order.
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }

  /// COLLECTIVE over the processes; once. Runs `body` in a thread of each hosted rank, and returns when the ranks of
  /// all processes have ended: what each of ranks() threw, null if nothing. A link that fails ends the waits of all
  /// ranks with Error{rank_failed}. Throws std::system_error, in no thread but its own, if the system gives too few
  /// threads.
  /// The ranks of other processes may take `leave_timeout` longer than those of this one: then Error{rank_failed}.
  [[nodiscard]] std::vector<std::exception_ptr> run(
      const std::function<void(int rank, std::unique_ptr<Transport> transport)>& body,
      std::chrono::duration<double> leave_timeout);

 private:
  [[nodiscard]] bool progress();
  [[nodiscard]] bool all_processes_ended();

  std::vector<int> hosts_;
  ProcessLink* link_;
  std::vector<int> ranks_;
  std::shared_ptr<InProcessMessages> messages_;
  bool link_failed_ = false;
  bool left_ = false;
  int others_left_ = 0;  ///< processes of which all ranks have ended
};

/// Throws the first of what run() returned, if any: rather a cause than what follows from it on other ranks.
void rethrow_cause(std::span<const std::exception_ptr> thrown);

}  // namespace kedge::comm
