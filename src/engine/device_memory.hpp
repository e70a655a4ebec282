// Regions whose memory is on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "device/staging.hpp"
#include "kedge/error.hpp"

namespace kedge::engine {

/// Local. What a step that is about a region throws names the region, unless it says of a file what is wrong.
template <class Step>
auto about_region(std::string_view name, Step&& step) {
  try {
    return std::forward<Step>(step)();
  } catch (const Error& error) {
    Failure failure = error.failure();
    const bool is_of_device = failure.code == ErrorCode::invalid_argument || failure.code == ErrorCode::device_failed ||
                              failure.code == ErrorCode::no_space;
    if (is_of_device && failure.path.empty() && failure.message.find(name) == std::string::npos) {
      failure.message = compose("region '{}': {}", name, failure.message);
    }
    throw Error(std::move(failure));
  }
}

/// Local. Where a Region or MutableRegion is, if that is on a device; what was given to the device before is done then.
template <class AnyRegion>
std::optional<device::Memory> memory_of(device::Staging& staging, const AnyRegion& region, std::uint64_t size_bytes) {
  if (size_bytes == 0) return std::nullopt;
  const device::Place place = staging.devices().place_of(region.data);
  if (place.kind == device::Place::Kind::host) return std::nullopt;
  staging.devices().settle(place, region.stream);
  auto* data = static_cast<std::byte*>(const_cast<void*>(region.data));  // NOLINT(*-const-cast): save only reads it
  return device::Memory{data, size_bytes, place};
}

}  // namespace kedge::engine
