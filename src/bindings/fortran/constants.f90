! The constants of kedge.h under the same names; a test compares the two.
module kedge_m_constants
  implicit none
  private

  ! Errors, as returned in `stat`.
  integer, parameter, public :: &
    KEDGE_OK = 0, &
    KEDGE_INVALID_ARGUMENT = 1, &
    KEDGE_BAD_STATE = 2, &
    KEDGE_NOT_FOUND = 3, &
    KEDGE_MISMATCH = 4, &
    KEDGE_NO_SPACE = 5, &
    KEDGE_IO = 6, &
    KEDGE_CORRUPT = 7, &
    KEDGE_UNRECOVERABLE = 8, &
    KEDGE_TIMEOUT = 9, &
    KEDGE_BUSY = 10, &
    KEDGE_RANK_FAILED = 11, &
    KEDGE_DEVICE_FAILED = 12

  integer, parameter, public :: &
    KEDGE_TAG_SIZE = 129, &
    KEDGE_ID_SIZE = 33, &
    KEDGE_PATH_SIZE = 4096, &
    KEDGE_MAX_DIMENSIONS = 8

  ! Element types of regions, as kedge_get_region returns them.
  integer, parameter, public :: &
    KEDGE_INT8 = 1, &
    KEDGE_INT16 = 2, &
    KEDGE_INT32 = 3, &
    KEDGE_INT64 = 4, &
    KEDGE_UINT8 = 5, &
    KEDGE_UINT16 = 6, &
    KEDGE_UINT32 = 7, &
    KEDGE_UINT64 = 8, &
    KEDGE_FLOAT16 = 9, &
    KEDGE_BFLOAT16 = 10, &
    KEDGE_FLOAT32 = 11, &
    KEDGE_FLOAT64 = 12, &
    KEDGE_COMPLEX64 = 13, &
    KEDGE_COMPLEX128 = 14, &
    KEDGE_BOOL = 15, &
    KEDGE_OPAQUE = 16, &
    KEDGE_FLOAT8_E4M3FN = 17, &
    KEDGE_FLOAT8_E5M2 = 18

  integer, parameter, public :: &
    KEDGE_ATTRIBUTE_INT64 = 1, &
    KEDGE_ATTRIBUTE_DOUBLE = 2, &
    KEDGE_ATTRIBUTE_STRING = 3

  integer, parameter, public :: &
    KEDGE_LEVEL_NONE = 0, &
    KEDGE_LEVEL_SNAPSHOT = 1, &
    KEDGE_LEVEL_LOCAL = 2, &
    KEDGE_LEVEL_PROTECTED = 3, &
    KEDGE_LEVEL_PERSISTENT = 4

  integer, parameter, public :: &
    KEDGE_KEEP_NEWER = 0, &
    KEDGE_DISCARD_NEWER = 1

  integer, parameter, public :: &
    KEDGE_SOURCE_IN_PLACE = 0, &
    KEDGE_SOURCE_MOVED = 1, &
    KEDGE_SOURCE_REBUILT = 2, &
    KEDGE_SOURCE_FETCHED = 3

  integer, parameter, public :: &
    KEDGE_PLACEMENT_OWN = 0, &
    KEDGE_PLACEMENT_SHARD = 1, &
    KEDGE_PLACEMENT_REPLICATED = 2
end module kedge_m_constants
