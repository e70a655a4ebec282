// What every tier promises, whatever it is made of. An implementation is run through it by
//   INSTANTIATE_TEST_SUITE_P(Name, TierContract, testing::Values(make_place));
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "persist/prefix_markers.hpp"
#include "persist/prefix_storage.hpp"

namespace kedge::faults {

/// A place of its own with nothing in it, which fails as planned.
class TierPlace {
 public:
  TierPlace() = default;
  TierPlace(const TierPlace&) = delete;
  TierPlace& operator=(const TierPlace&) = delete;
  virtual ~TierPlace() = default;

  /// Rank 0's in the newest start.
  [[nodiscard]] virtual const persist::PrefixStorage& prefix_storage() = 0;
  [[nodiscard]] virtual persist::PrefixMarkers markers() = 0;
  /// What another rank sees; it can look and put.
  [[nodiscard]] virtual const persist::PrefixStorage& other_rank() = 0;
  /// Another start of the run begins; tier() is then that one's. What the one before has is overtaken.
  virtual void start_again() = 0;
  /// Rank 0's in the start before.
  [[nodiscard]] virtual const persist::PrefixStorage& overtaken() = 0;
  /// From now on, rank 0's n-th operation that changes something fails, counted from 1; heal() ends it.
  virtual void fail(std::uint64_t n) = 0;
  virtual void heal() = 0;
};

class TierContract : public testing::TestWithParam<std::function<std::unique_ptr<TierPlace>()>> {};

}  // namespace kedge::faults
