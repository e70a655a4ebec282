// Removes retracted commits from the prefix piece by piece, on all ranks: no call waits for all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "comm/group.hpp"
#include "persist/prefix_storage.hpp"

namespace kedge::pipeline {

/// A queue that is equal on every rank. If the engine ends before it is empty, the next start finds the leftovers.
class CommitRemoval {
 public:
  /// The referenced objects must outlive it.
  CommitRemoval(persist::PrefixRemover& remover, Clock& clock, Log log)
      : remover_(remover), clock_(clock), log_(std::move(log)) {}

  /// COLLECTIVE. Adds rank 0's `remains` to the queue.
  void add_leftovers(const comm::Group& group, const std::vector<persist::Leftover>& remains);
  /// Local, on every rank alike. Keeps a name that is about to be written again.
  void forget_name(const std::string& name);
  /// COLLECTIVE. Each rank removes files of its share, oldest first, for about `budget_s`, but at least one; rank 0
  /// then removes empty directories. Returns their number on rank 0. Failures are logged once, and leave the rest to a
  /// later start. Throws busy on all ranks if a later start of the run has begun.
  std::size_t run_step(const comm::Group& group, double budget_s);
  /// Rank 0. Logs once if removing is slow.
  void log_if_slow(std::size_t cleared, double seconds);
  [[nodiscard]] bool is_done() const noexcept { return queue_.empty(); }

 private:
  struct Item {
    persist::Leftover remains;
    std::uint64_t next = 0;  ///< lowest rank of this process's share whose container may exist
  };

  [[nodiscard]] std::uint64_t remove_share(const comm::Group& group, double give_up_at);
  [[nodiscard]] std::uint64_t clear_finished(std::uint64_t finished, double give_up_at);
  void warn_once(const std::string& text);

  persist::PrefixRemover& remover_;
  Clock& clock_;
  Log log_;
  std::deque<Item> queue_;
  bool warned_ = false;
  bool has_logged_slow_ = false;
};

}  // namespace kedge::pipeline
