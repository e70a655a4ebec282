#include "device/kernels/image.hpp"

#ifdef KEDGE_KERNEL_IMAGE

// Embedded with .incbin, so that no compiler has to parse a large array.
asm(".section .rodata\n"
    ".balign 64\n"
    ".hidden kedge_kernel_image\n"
    ".globl kedge_kernel_image\n"
    "kedge_kernel_image:\n"
    ".incbin \"" KEDGE_KERNEL_IMAGE
    "\"\n"
    ".previous\n");
extern "C" __attribute__((visibility("hidden"))) const unsigned char kedge_kernel_image[];  // NOLINT(*-avoid-c-arrays)

const void* kedge::device::kernel_image() noexcept { return kedge_kernel_image; }

#else

const void* kedge::device::kernel_image() noexcept { return nullptr; }

#endif
