// The kernels as this library carries them.
#pragma once

namespace kedge::device {

/// For all architectures that were built for, as the driver loads it; null if this library was built without.
[[nodiscard]] const void* kernel_image() noexcept;

}  // namespace kedge::device
