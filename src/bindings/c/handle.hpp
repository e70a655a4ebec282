// The opaque types of kedge.h, and conversions of C arguments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/engine.hpp"
#include "kedge/kedge.h"
#include "kedge/options.hpp"
#include "kedge/types.hpp"

// NOLINTBEGIN(readability-identifier-naming): C's names
struct kedge_options {
  explicit kedge_options(kedge::Options loaded) : options(std::move(loaded)) {}

  kedge::Options options;
};

struct kedge_engine {
  explicit kedge_engine(kedge::Engine made) : engine(std::move(made)) {}

  kedge::Engine engine;
  std::optional<kedge::DeviceStream> stream;  ///< given to kedge_set_stream

  /// The open checkpoint's regions, queried once, because callers hold pointers to their names until close.
  mutable std::mutex mutex;
  mutable std::vector<kedge::RegionInfo> regions;
  mutable bool regions_known = false;

  void forget_regions() {
    const std::lock_guard guard(mutex);
    regions.clear();
    regions_known = false;
  }
};
// NOLINTEND(readability-identifier-naming)

namespace kedge::bindings {

/// An invalid tag that the engine refuses on all ranks, short enough for strings to store it without allocation.
inline constexpr std::string_view kUnusableTag = "(unusable)";

/// The element type; an invalid one, which the engine refuses, if the number is not a type.
inline DataType data_type_of(kedge_dtype dtype) noexcept {
  const bool known = dtype >= KEDGE_INT8 && static_cast<int>(dtype) <= static_cast<int>(kLastDataType);
  return static_cast<DataType>(known ? dtype : 0);
}

/// Copies text to a caller's buffer, truncated with a final zero, and its full length to `length` unless it is null.
inline void copy_text(std::string_view text, char* buffer, std::size_t size, std::size_t* length) noexcept {
  if (length != nullptr) *length = text.size();
  if (size == 0) return;
  const std::size_t copied = std::min(text.size(), size - 1);
  std::copy_n(text.data(), copied, buffer);
  buffer[copied] = '\0';
}

}  // namespace kedge::bindings
