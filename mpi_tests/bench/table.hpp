// What was measured, row by row and round by round.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kedge_bench {

struct Row {
  std::string key;      ///< in JSON
  std::string what;     ///< for people
  std::string against;  ///< key of the row that its ratio is to; empty: none
  std::optional<double> target;
  std::vector<double> seconds;  ///< one for each round
};

class Table {
 public:
  /// Rows appear in this order.
  void add(Row row) { rows_.push_back(std::move(row)); }
  /// Throws std::out_of_range for a key that was not added.
  void record(const std::string& key, double seconds) {
    for (Row& row : rows_) {
      if (row.key == key) return row.seconds.push_back(seconds);
    }
    throw std::out_of_range("no row " + key);
  }
  [[nodiscard]] const Row* find(const std::string& key) const noexcept {
    for (const Row& row : rows_) {
      if (row.key == key) return &row;
    }
    return nullptr;
  }
  [[nodiscard]] const std::vector<Row>& rows() const noexcept { return rows_; }
  /// Forgets the rounds, not the rows.
  void clear() noexcept {
    for (Row& row : rows_) row.seconds.clear();
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace kedge_bench
