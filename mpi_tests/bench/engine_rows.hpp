// What Kedge does, through its public API alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "data.hpp"
#include "kedge/engine.hpp"
#include "table.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// COLLECTIVE calls throw on all ranks.
class EngineRows {
 public:
  EngineRows(const Arguments& arguments, const Workplace& workplace, Buffers& buffers, int rank, int ranks);

  /// Local. Adds the rows that round() records.
  void add_to(Table& table) const;
  /// COLLECTIVE. Checkpoints, restarts, loses a node: each row once, and everything that comes back compared.
  void round(Table& table);

 private:
  void start();
  void checkpoint(const std::string& tag);
  void new_data();
  void write(Table& table);
  void reopen(Table& table);
  void lose_and_reopen(Table& table);
  void load_and_compare(const std::string& tag, kedge::RecoverySource expected);

  const Arguments& arguments_;
  const Workplace& workplace_;
  Buffers& buffers_;
  int rank_;
  int ranks_;
  bool protects_;
  std::uint64_t content_ = 0;  // number of what is in data
  std::uint64_t rounds_ = 0;
  std::string newest_;
  double load_s_ = 0;
  std::optional<kedge::Engine> engine_;
};

}  // namespace kedge_bench
