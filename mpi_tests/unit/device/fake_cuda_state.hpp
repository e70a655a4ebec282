// What the fake CUDA driver knows: of fake_cuda.cpp and fake_cuda_control.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace fake_cuda {

inline constexpr int kSuccess = 0;
inline constexpr int kInvalidValue = 1;
inline constexpr int kNotInitialized = 3;
inline constexpr int kInvalidContext = 201;
inline constexpr int kInvalidHandle = 400;
inline constexpr int kNotFound = 500;
inline constexpr int kIllegalAddress = 700;
inline constexpr int kCaptureInvalidated = 901;
inline constexpr int kAlreadyRegistered = 712;
inline constexpr int kNotRegistered = 713;

struct Allocation {
  std::size_t size_bytes = 0;
  std::byte* inside = nullptr;
  int ordinal = 0;
  bool of_pool = false;
};

struct Failing {
  int left = 0;
  int result = 0;
  bool for_good = false;
};

struct Driver {
  std::recursive_mutex mutex;
  bool begun = false;
  std::map<std::byte*, Allocation> allocations;
  std::map<std::byte*, std::size_t> pinned;
  std::set<std::byte*> registered;  ///< of the pinned, what was memory of somebody else before
  std::set<void*> streams;
  std::map<void*, std::vector<std::function<void()>>> given;
  std::map<std::string, Failing> failing;
  int lost = kSuccess;
  int modules = 0;
  bool captures = false;  ///< a thread captures a stream, in global mode
};

inline Driver& driver() {
  static Driver one;
  return one;
}

/// What a call of this function is to return, as tests have planned.
inline int planned(const char* function) {
  const auto found = driver().failing.find(function);
  if (found != driver().failing.end() && --found->second.left == 0) {
    const Failing failing = found->second;
    driver().failing.erase(found);
    if (failing.for_good) driver().lost = failing.result;
    return failing.result;
  }
  return driver().lost;
}

/// How this thread meets captures of others: 0 is global, as at first, 2 relaxed.
inline thread_local int capture_mode = 0;

/// The contexts that are current.
inline thread_local std::vector<int> pushed;

/// A context is the number of its device, from 1.
inline void* context_of(int ordinal) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(ordinal) + 1); }

template <class Map>
auto within(Map& map, const std::byte* address) {
  auto after = map.upper_bound(const_cast<std::byte*>(address));
  return after == map.begin() ? map.end() : --after;
}

}  // namespace fake_cuda
