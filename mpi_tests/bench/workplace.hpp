// Directories for stores, prefix and plain files, which go with the object.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "arguments.hpp"

namespace kedge_bench {

class Workplace {
 public:
  /// COLLECTIVE. Throws std::runtime_error on all ranks.
  Workplace(const Arguments& arguments, int rank, int ranks);
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
  [[nodiscard]] int nodes() const noexcept { return nodes_; }
  [[nodiscard]] int ranks_per_node() const noexcept { return ranks_per_node_; }
  /// COLLECTIVE. So many nodes, from this one on, are gone with all that they stored. More than there are count again
  /// from the first.
  void lose_nodes(std::uint64_t first, std::uint64_t count) const;
  /// COLLECTIVE. All of them are gone.
  void lose_all_nodes() const;
  /// COLLECTIVE. What lies on the prefix is in the page cache, or not.
  void warm_prefix() const;
  void evict_prefix() const;
  /// COLLECTIVE. The prefix is empty of checkpoints, without Kedge being asked.
  void remove_tag_directories() const;

 private:
  void remove() const noexcept;
  void lose_own_store() const;
  void for_own_share(const std::string& directory, const std::function<void(const std::string&)>& call) const;

  int rank_;
  int ranks_;
  int nodes_;
  int ranks_per_node_;
  std::string stores_;
  std::string disk_;
};

}  // namespace kedge_bench
