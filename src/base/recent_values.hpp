// The last few measured values, of which the largest is to be expected.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace kedge {

/// The last `kept` values.
template <std::size_t kept>
class RecentValues {
 public:
  void add(double value) {
    values_[next_] = value;
    next_ = (next_ + 1) % kept;
    count_ = std::min(count_ + 1, kept);
  }
  /// Returns the largest value; nothing if there is none yet.
  [[nodiscard]] std::optional<double> largest() const {
    if (count_ == 0) return std::nullopt;
    return *std::max_element(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(count_));
  }

 private:
  std::array<double, kept> values_{};
  std::size_t next_ = 0;
  std::size_t count_ = 0;
};

}  // namespace kedge
