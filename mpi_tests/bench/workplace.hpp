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
  [[nodiscard]] std::string prefix() const { return disk_ + "/prefix"; }
  /// On the stores' filesystem.
  [[nodiscard]] std::string plain() const { return stores_ + "/plain"; }
  /// On the prefix's filesystem.
  [[nodiscard]] std::string plain_on_disk() const { return disk_ + "/plain"; }
  /// COLLECTIVE. The node that this rank acts as is gone, with all that it stored.
  void lose_node(int lost_rank) const;
  /// COLLECTIVE. All of them are gone.
  void lose_all_nodes() const;
  /// COLLECTIVE. The prefix is empty of checkpoints, without Kedge being asked.
  void remove_tag_folders() const;

 private:
  void remove() const noexcept;
  void lose_own_store() const;

  int rank_;
  std::string stores_;
  std::string disk_;
};

}  // namespace kedge_bench
