// Folders for stores, prefix and plain files, which go with the object.
#pragma once

#include <string>

#include "arguments.hpp"

namespace kedge_bench {

class Workplace {
 public:
  /// COLLECTIVE. Throws std::runtime_error on all ranks.
  Workplace(const Arguments& arguments, int rank);
  /// Local; the last round has ended, or failed, on all ranks.
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  [[nodiscard]] std::string store() const { return stores_ + "/{node}"; }
  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }
  /// On the stores' filesystem.
  [[nodiscard]] std::string plain() const { return stores_ + "/plain"; }
  /// COLLECTIVE. The node that this rank acts as is gone, with all that it stored.
  void lose_node(int lost_rank) const;

 private:
  void remove() const noexcept;

  int rank_;
  std::string stores_;
  std::string prefix_;
};

}  // namespace kedge_bench
