// A Transport between threads, for tests: a message is handed over only when its receive is there, and a receive that
// is larger than the message does not notice, as in message layers that know no more than that.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kedge/transport.hpp"

namespace kedge::testing {

/// What the transports of all ranks share.
class ThreadMessages {
 public:
  explicit ThreadMessages(int ranks) : ranks_(ranks), opened_(static_cast<std::size_t>(ranks)) {}

  [[nodiscard]] int size() const noexcept { return ranks_; }
  /// From now on every call that has to do with this rank fails.
  void lose(int rank);

  [[nodiscard]] std::unique_ptr<Transport> transport(int rank);

 private:
  friend class ThreadTransport;
  friend class ThreadTransfer;

  struct Entry {
    int from = 0;
    int to = 0;
    int lane = 0;
    std::span<const std::byte> source;
    std::span<std::byte> target;
    bool done = false;
    bool too_large = false;
  };

  void match(const std::shared_ptr<Entry>& entry, bool sends);
  [[nodiscard]] bool lost(const Entry& entry) const;

  int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> opened_;  // channels that each rank opened
  std::vector<bool> lost_ = std::vector<bool>(static_cast<std::size_t>(ranks_));
  std::list<std::shared_ptr<Entry>> sends_;
  std::list<std::shared_ptr<Entry>> receives_;
};

}  // namespace kedge::testing
