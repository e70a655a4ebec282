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

/// Local. Adds the region's name to an error of the step, unless the error is about a file.
template <class Step>
auto with_region_name(std::string_view name, Step&& step) {
  try {
    return std::forward<Step>(step)();
  } catch (const Error& error) {
    Failure failure = error.failure();
    const std::string region = compose("region '{}'", name);
    if (failure.path.empty() && failure.message.find(region) == std::string::npos) {
      failure.message = compose("{}: {}", region, failure.message);
    }
    throw Error(std::move(failure));
  }
}

/// Local. Where a Region or MutableRegion is, if that is on a device; what was given to the device before is done then.
template <class AnyRegion>
std::optional<device::Span> find_device_memory(device::Staging& staging, const AnyRegion& region,
                                               std::uint64_t size_bytes) {
  if (size_bytes == 0) return std::nullopt;
  const device::MemoryLocation location = staging.devices().location_of(region.data);
  const bool is_on_host = location.kind == device::MemoryLocation::Kind::host;
  // A stream that is given may be what fills pinned memory of the host.
  if (!is_on_host || region.stream) staging.devices().synchronize(location, region.stream);
  if (is_on_host) return std::nullopt;
  auto* data = static_cast<std::byte*>(const_cast<void*>(region.data));  // NOLINT(*-const-cast): save only reads it
  return device::Span{data, size_bytes, location};
}

}  // namespace kedge::engine
