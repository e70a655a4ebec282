! The structs of kedge.h.
module kedge_m_c_types
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int32_t, c_int64_t, c_ptr, c_size_t
  use kedge_m_constants, only: KEDGE_ID_SIZE, KEDGE_MAX_DIMENSIONS, KEDGE_TAG_SIZE
  implicit none
  private
  public :: c_failure, c_attribute, c_counters, c_info, c_region, c_want

  type, bind(c) :: c_failure
    integer(c_int) :: code
    integer(c_int) :: rank
    integer(c_int) :: system_errno
    type(c_ptr) :: text
    type(c_ptr) :: path
  end type c_failure

  type, bind(c) :: c_attribute
    type(c_ptr) :: key
    integer(c_int) :: type
    integer(c_size_t) :: count
    type(c_ptr) :: value
  end type c_attribute

  type, bind(c) :: c_counters
    integer(c_int64_t) :: commits
    integer(c_int64_t) :: commits_failed
    integer(c_int64_t) :: protections
    integer(c_int64_t) :: protections_failed
    integer(c_int64_t) :: flushes
    integer(c_int64_t) :: flushes_failed
    integer(c_int64_t) :: flush_retries
    integer(c_int64_t) :: retired
    integer(c_int64_t) :: opens
    integer(c_int64_t) :: pending
    integer(c_int64_t) :: saved_bytes
    integer(c_int64_t) :: protected_bytes
    integer(c_int64_t) :: flushed_bytes
    integer(c_int64_t) :: fetched_bytes
    real(c_double) :: blocked_s
    real(c_double) :: blocked_last_s
    real(c_double) :: protected_last_s
    real(c_double) :: protected_max_s
    real(c_double) :: persistent_last_s
    real(c_double) :: persistent_max_s
    integer(c_int64_t) :: reserved(12)
  end type c_counters

  type, bind(c) :: c_info
    character(kind=c_char) :: tag(KEDGE_TAG_SIZE)
    character(kind=c_char) :: commit_id(KEDGE_ID_SIZE)
    character(kind=c_char) :: parent_commit_id(KEDGE_ID_SIZE)
    integer(c_int) :: source
    integer(c_int32_t) :: world_size
    integer(c_int32_t) :: logical_rank
    integer(c_int64_t) :: generation
    integer(c_int64_t) :: incarnation
    integer(c_int64_t) :: total_bytes
    integer(c_int64_t) :: time_ns
    integer(c_size_t) :: attribute_count
    integer(c_int64_t) :: is_output
    integer(c_int64_t) :: reserved(7)
  end type c_info

  type, bind(c) :: c_region
    type(c_ptr) :: name
    integer(c_int64_t) :: size_bytes
    integer(c_int) :: dtype
    integer(c_int) :: placement
    integer(c_int) :: dimensions
    integer(c_int) :: routed
    integer(c_int64_t) :: shape(KEDGE_MAX_DIMENSIONS)
    integer(c_int64_t) :: global_shape(KEDGE_MAX_DIMENSIONS)
    integer(c_int64_t) :: offset(KEDGE_MAX_DIMENSIONS)
    integer(c_int64_t) :: reserved(8)
  end type c_region

  type, bind(c) :: c_want
    type(c_ptr) :: name
    type(c_ptr) :: data
    type(c_ptr) :: shape
    integer(c_int) :: dtype
    integer(c_int) :: dimensions
    integer(c_int) :: placement
    type(c_ptr) :: global_shape
    type(c_ptr) :: offset
    type(c_ptr) :: of
    type(c_ptr) :: refused
    integer(c_int64_t) :: reserved(4)
  end type c_want
end module kedge_m_c_types
