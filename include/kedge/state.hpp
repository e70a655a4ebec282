// The common case: the same memory is saved at each checkpoint and loaded once at the start.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/engine.hpp"

namespace kedge {

/// The named pieces of memory that make up a rank's state. A State only points to the memory; the caller owns it
/// and keeps it valid and in place while the State is used. Ranks may have different lists.
class State {
 public:
  /// Adds a one-dimensional array, or a block of a global one.
  template <class T, std::size_t extent>
  State& add(std::string name, std::span<T, extent> values, const Placement& placement = {}) {
    return add(std::move(name), mutable_region(values), placement);
  }
  /// Adds a single value (step counter, seed, time).
  template <class T>
  requires(std::is_arithmetic_v<T>) State& add(std::string name, T& value, const Placement& placement = {}) {
    return add(std::move(name), MutableRegion{&value, kDataType<T>, Shape{}}, placement);
  }
  /// Adds memory of any shape.
  State& add(std::string name, MutableRegion region, const Placement& placement = {}) {
    items_.push_back({std::move(name), region, placement});
    return *this;
  }

  struct Item {
    std::string name;
    MutableRegion region;
    Placement placement;
  };
  [[nodiscard]] const std::vector<Item>& items() const noexcept { return items_; }

 private:
  std::vector<Item> items_;
};

}  // namespace kedge
