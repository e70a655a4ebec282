// The compiled kernels in this library.
#pragma once

namespace kedge::device {

/// The image for the driver to load, with all architectures it was built for; null if built without kernels.
[[nodiscard]] const void* kernel_image() noexcept;

}  // namespace kedge::device
