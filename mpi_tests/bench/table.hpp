// What was measured, row by row and round by round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kedge_bench {

/// Of a row's values.
enum class Unit : std::uint8_t { seconds, microseconds, kibibytes, mebibytes, bytes_per_byte };

struct Row {
  std::string key;          ///< in JSON, and in targets.hpp
  std::string what;         ///< for people
  std::string against;      ///< key of the row that its ratio is to; empty: none
  std::uint64_t bytes = 0;  ///< user data of all ranks that it moves; 0: a rate would mean nothing
  Unit unit = Unit::seconds;
  std::vector<double> values{};  ///< one for each round; of mebibytes one for all of them
};

class Table {
 public:
  /// Rows appear in this order.
  void add(Row row) { rows_.push_back(std::move(row)); }
  /// Throws std::out_of_range for a key that was not added.
  void record(const std::string& key, double value) {
    for (Row& row : rows_) {
      if (row.key == key) return row.values.push_back(value);
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
  /// Forgets what all rows have of one round. All must have it.
  void forget(std::size_t round) {
    for (Row& row : rows_) {
      if (!row.values.empty()) row.values.erase(row.values.begin() + static_cast<std::ptrdiff_t>(round));
    }
  }
  /// Forgets the rounds, not the rows.
  void clear() noexcept {
    for (Row& row : rows_) row.values.clear();
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace kedge_bench
