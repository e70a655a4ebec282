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
    known_ = std::min(known_ + 1, kept);
  }
  /// Nothing if there is none yet.
  [[nodiscard]] std::optional<double> largest() const {
    if (known_ == 0) return std::nullopt;
    return *std::max_element(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(known_));
  }

 private:
  std::array<double, kept> values_{};
  std::size_t next_ = 0;
  std::size_t known_ = 0;
};

}  // namespace kedge
