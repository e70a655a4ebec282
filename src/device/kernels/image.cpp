#include "device/kernels/image.hpp"

#ifdef KEDGE_KERNEL_IMAGE

#include <cstdint>

// Embedded with .incbin: compilers are slow with large arrays.
asm(".section .rodata\n"
    ".balign 64\n"
    ".hidden kedge_kernel_image\n"
    ".globl kedge_kernel_image\n"
    "kedge_kernel_image:\n"
    ".incbin \"" KEDGE_KERNEL_IMAGE
    "\"\n"
    "1:\n"
    ".balign 8\n"
    ".hidden kedge_kernel_image_bytes\n"
    ".globl kedge_kernel_image_bytes\n"
    "kedge_kernel_image_bytes:\n"
    ".8byte 1b - kedge_kernel_image\n"
    ".previous\n");
extern "C" __attribute__((visibility("hidden"))) const unsigned char kedge_kernel_image[];  // NOLINT(*-avoid-c-arrays)

extern "C" __attribute__((visibility("hidden"))) const std::uint64_t kedge_kernel_image_bytes;

/// Null if nvcc could not compile the kernels.
const void* kedge::device::kernel_image() noexcept {
  return kedge_kernel_image_bytes == 0 ? nullptr : kedge_kernel_image;
}

#else

const void* kedge::device::kernel_image() noexcept { return nullptr; }

#endif
