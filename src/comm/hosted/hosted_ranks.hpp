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

/// The ranks that this process hosts. Messages between them go through memory, others through a link, which only the
/// thread that runs run() uses.
class HostedRanks {
 public:
  /// `hosts` has the process of each rank, and is equal in every process. `link` must outlive this; it is null if there
  /// is one process.
  HostedRanks(std::vector<int> hosts, ProcessLink* link);
  ~HostedRanks();
  HostedRanks(const HostedRanks&) = delete;
  HostedRanks& operator=(const HostedRanks&) = delete;

  /// Returns the hosted ranks in ascending order.
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }

  /// COLLECTIVE over the processes; call it once. Runs `body` in a thread of each hosted rank until the ranks of all
  /// processes have ended. Returns what each of ranks() threw; null if nothing. A link that fails ends the waits of all
  /// ranks with Error{rank_failed}. Throws Error{rank_failed} if ranks of other processes take `leave_timeout` longer
  /// than those of this one; std::system_error, in its own thread only, if the system grants too few threads.
  [[nodiscard]] std::vector<std::exception_ptr> run(
      const std::function<void(int rank, std::unique_ptr<Transport> transport)>& body,
      std::chrono::duration<double> leave_timeout);

 private:
  [[nodiscard]] bool progress();
  [[nodiscard]] bool all_processes_ended();

  std::vector<int> process_of_rank_;
  ProcessLink* link_;
  std::vector<int> ranks_;
  std::shared_ptr<InProcessMessages> messages_;
  bool has_link_failed_ = false;
  bool has_left_ = false;
  int ended_process_count_ = 0;  ///< number of other processes whose ranks have all ended
};

/// Throws the first exception that run() returned, if any; causes go before their consequences on other ranks.
void rethrow_cause(std::span<const std::exception_ptr> thrown);

}  // namespace kedge::comm
