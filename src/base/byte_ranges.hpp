// A set of bytes of a file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace kedge {

/// A set of disjoint ranges; ranges that touch or overlap are joined.
class ByteRanges {
 public:
  void add(std::uint64_t offset, std::uint64_t length) {
    if (length == 0) return;
    std::uint64_t begin = offset;
    std::uint64_t end = offset + length;
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin()) {
      if (const auto before = std::prev(next); before->second >= begin) next = before;
    }
    while (next != ends_.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = ends_.erase(next);
    }
    ends_[begin] = end;
  }
  /// Removes all bytes from `size_bytes` on.
  void truncate(std::uint64_t size_bytes) {
    ends_.erase(ends_.lower_bound(size_bytes), ends_.end());
    if (!ends_.empty()) std::prev(ends_.end())->second = std::min(std::prev(ends_.end())->second, size_bytes);
  }
  /// Returns the number of bytes in the set.
  [[nodiscard]] std::uint64_t size_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [begin, end] : ends_) sum += end - begin;
    return sum;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  ///< end of each range, by its beginning
};

}  // namespace kedge
