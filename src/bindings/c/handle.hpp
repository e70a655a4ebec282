// The opaque types of kedge.h, and conversions of C's arguments to the engine's.
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
  std::optional<kedge::DeviceStream> stream;  ///< of kedge_set_stream

  /// Regions of the open checkpoint, asked for once: their names are lent to the caller until close.
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

/// Not a valid tag, so the engine refuses it on all ranks. Short enough that a string of it allocates nothing.
inline constexpr std::string_view kUnusableTag = "(unusable)";

/// The element type of this number; none, which the engine refuses, if there is no such type.
inline DataType data_type_of(kedge_dtype dtype) noexcept {
  const bool known = dtype >= KEDGE_INT8 && static_cast<int>(dtype) <= static_cast<int>(kLastDataType);
  return static_cast<DataType>(known ? dtype : 0);
}

/// Text into a caller's buffer, cut to its size, closed by a zero; the whole length to `length` if it is not null.
inline void copy_text(std::string_view text, char* buffer, std::size_t size, std::size_t* length) noexcept {
  if (length != nullptr) *length = text.size();
  if (size == 0) return;
  const std::size_t copied = std::min(text.size(), size - 1);
  std::copy_n(text.data(), copied, buffer);
  buffer[copied] = '\0';
}

}  // namespace kedge::bindings
