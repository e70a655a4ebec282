// What is no commit any more leaves the prefix piece by piece, dealt out over the ranks: no call waits for all of it.
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

/// The same queue on every rank. What is still in it when the engine ends, the next start finds among its leftovers.
class Removal {
 public:
  /// All that is referred to must outlive it.
  Removal(persist::PrefixStorage& prefix_storage, Clock& clock, Log log)
      : prefix_storage_(prefix_storage), clock_(clock), log_(std::move(log)) {}

  /// COLLECTIVE. Queues rank 0's `remains`.
  void add(const comm::Group& group, const std::vector<persist::Leftover>& remains);
  /// Local, on every rank alike. What is to be written again is not removed.
  void forget(const std::string& name);
  /// COLLECTIVE. Each rank removes files of its share, the oldest queued first, for about as long as said and at least
  /// one; rank 0 clears what nothing is left of, and is told how many that were. A failure is logged once, and leaves
  /// what it is about to a later start. Throws busy on all ranks if a later start of the run has begun.
  std::size_t step(const comm::Group& group, double budget_s);
  /// Rank 0. After steps that took so long; once.
  void say_if_slow(std::size_t cleared, double seconds);
  /// The same on every rank.
  [[nodiscard]] bool is_done() const noexcept { return queue_.empty(); }

 private:
  struct Item {
    persist::Leftover remains;
    std::uint64_t next = 0;  ///< the lowest rank of this process's share whose container may be there
  };

  [[nodiscard]] std::uint64_t remove_share(const comm::Group& group, double give_up_at);
  [[nodiscard]] std::uint64_t clear(std::uint64_t finished, double give_up_at);
  void warn_once(const std::string& text);

  persist::PrefixStorage& prefix_storage_;
  Clock& clock_;
  Log log_;
  std::deque<Item> queue_;
  bool warned_ = false;
  bool said_slow_ = false;
};

}  // namespace kedge::pipeline
