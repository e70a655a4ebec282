// Linux constants that older headers lack or only kernel headers define.
#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace kedge::fs {

/// The smallest page size; tmpfs allocates whole pages (st_blocks).
inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr long kTmpfsMagic = 0x01021994;
inline constexpr long kRamfsMagic = 0x858458f6;

// madvise advice; older kernels reject it.
#ifdef MADV_POPULATE_READ
inline constexpr int kPopulateRead = MADV_POPULATE_READ;  ///< since Linux 5.14
inline constexpr int kPopulateWrite = MADV_POPULATE_WRITE;
#else
inline constexpr int kPopulateRead = 22;
inline constexpr int kPopulateWrite = 23;
#endif
#ifdef MADV_COLLAPSE
inline constexpr int kCollapse = MADV_COLLAPSE;  ///< since Linux 6.1
#else
inline constexpr int kCollapse = 25;
#endif

}  // namespace kedge::fs
