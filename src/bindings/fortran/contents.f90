! Queries of the open checkpoint.
module kedge_m_contents
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int64_t, c_null_char, c_size_t
  use, intrinsic :: iso_fortran_env, only: int64
  use kedge_m_c_api
  use kedge_m_constants, only: KEDGE_ID_SIZE, KEDGE_MAX_DIMENSIONS, KEDGE_NOT_FOUND, KEDGE_OK, &
    KEDGE_PLACEMENT_OWN, KEDGE_PLACEMENT_SHARD, KEDGE_SOURCE_IN_PLACE, KEDGE_TAG_SIZE
  use kedge_m_engine, only: kedge_engine
  use kedge_m_failures, only: from_c, on_this_rank, settle, to_c
  implicit none
  private
  public :: kedge_get_info, kedge_region_count, kedge_get_region, kedge_find_region
  public :: kedge_source_name, kedge_dtype_size

  type, public :: kedge_info
    character(len=KEDGE_TAG_SIZE - 1) :: tag = ""
    character(len=KEDGE_ID_SIZE - 1) :: commit_id = ""
    character(len=KEDGE_ID_SIZE - 1) :: parent_commit_id = ""  ! zeros if there is none
    integer :: source = KEDGE_SOURCE_IN_PLACE  ! the costliest that any rank needed
    integer :: world_size = 0     ! ranks that saved it
    integer :: logical_rank = 0   ! of the container that this process loads, from 0
    integer(int64) :: generation = 0
    integer(int64) :: incarnation = 0
    integer(int64) :: total_bytes = 0  ! of all ranks' containers
    integer(int64) :: time_ns = 0      ! creation time, since 1970-01-01 UTC
    integer :: attribute_count = 0
    logical :: is_output = .false.           ! made by kedge_create_output
  end type kedge_info

  ! One region of this rank in the open checkpoint. Dimensions are in Fortran's order, also for arrays of other
  ! languages; the first one of a string's region is its length.
  type, public :: kedge_region
    character(len=:), allocatable :: name
    integer(int64) :: size_bytes = 0
    integer :: dtype = 0
    integer :: placement = KEDGE_PLACEMENT_OWN
    integer :: dimensions = 0
    logical :: routed = .false.  ! a file, for kedge_route_in
    integer(int64) :: shape(KEDGE_MAX_DIMENSIONS) = 0
    integer(int64) :: global_shape(KEDGE_MAX_DIMENSIONS) = 0  ! of a shard, else zero
    integer(int64) :: start(KEDGE_MAX_DIMENSIONS) = 0         ! of a shard: the index of its first element; else zero
  end type kedge_region

contains

  ! Local. Describes the checkpoint that is open, or was opened last. KEDGE_BAD_STATE if there was none.
  subroutine kedge_get_info(engine, info, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    type(kedge_info), intent(inout) :: info
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_info) :: known
    integer(c_int) :: code

    code = c_get_info(engine%handle, known)
    if (code == KEDGE_OK) then
      info%tag = joined(known%tag)
      info%commit_id = joined(known%commit_id)
      info%parent_commit_id = joined(known%parent_commit_id)
      info%source = int(known%source)
      info%world_size = int(known%world_size)
      info%logical_rank = int(known%logical_rank)
      info%generation = known%generation
      info%incarnation = known%incarnation
      info%total_bytes = known%total_bytes
      info%time_ns = known%time_ns
      info%attribute_count = int(known%attribute_count)
      info%is_output = known%is_output /= 0
    end if
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine kedge_get_info

  ! Local. The number of this rank's regions in the open checkpoint.
  subroutine kedge_region_count(engine, count, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    integer, intent(out) :: count
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_size_t) :: number
    integer(c_int) :: code

    number = 0
    code = c_region_count(engine%handle, number)
    count = merge(int(number), 0, code == KEDGE_OK)
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine kedge_region_count

  ! Local. Describes a region by its index, from 1. KEDGE_NOT_FOUND: no such index.
  subroutine kedge_get_region(engine, index, region, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    integer, intent(in) :: index
    type(kedge_region), intent(inout) :: region
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_region) :: known
    integer(c_int) :: code, counted
    integer(c_size_t) :: number
    character(len=100) :: text

    code = c_get_region(engine%handle, int(index, c_size_t) - 1, known)  ! index 0 is beyond all in C
    if (code == KEDGE_OK) call take_region(known, region)
    if (code /= KEDGE_NOT_FOUND) then
      call settle(code, on_this_rank, stat, errmsg)
      return
    end if
    number = 0
    counted = c_region_count(engine%handle, number)
    write (text, "(a,i0,a,i0,a)") "there is no region ", index, "; this rank has ", number, " regions, and the first is 1"
    call settle(code, on_this_rank, stat, errmsg, trim(text))
  end subroutine kedge_get_region

  ! Local. Describes a region by its name, e.g. to allocate memory before kedge_load. KEDGE_NOT_FOUND: no such name.
  subroutine kedge_find_region(engine, name, region, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: name
    type(kedge_region), intent(inout) :: region
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_region) :: known
    integer(c_int) :: code

    code = c_find_region(engine%handle, to_c(name), known)
    if (code == KEDGE_OK) call take_region(known, region)
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine kedge_find_region

  ! "in place", "moved", "rebuilt", "fetched"; "unknown" for any other number.
  function kedge_source_name(source) result(name)
    integer, intent(in) :: source
    character(len=:), allocatable :: name

    name = from_c(c_source_name(int(source, c_int)))
  end function kedge_source_name

  ! Bytes of one element; 0 for a number that is not a type.
  function kedge_dtype_size(dtype) result(bytes)
    integer, intent(in) :: dtype
    integer :: bytes

    bytes = int(c_dtype_size(int(dtype, c_int)))
  end function kedge_dtype_size

  subroutine take_region(known, region)
    type(c_region), intent(in) :: known
    type(kedge_region), intent(out) :: region
    integer :: n

    n = int(known%dimensions)
    region%name = from_c(known%name)
    region%size_bytes = known%size_bytes
    region%dtype = int(known%dtype)
    region%placement = int(known%placement)
    region%dimensions = n
    region%routed = known%routed /= 0
    region%shape(:n) = known%shape(n:1:-1)
    if (region%placement /= KEDGE_PLACEMENT_SHARD) return
    region%global_shape(:n) = known%global_shape(n:1:-1)
    region%start(:n) = known%offset(n:1:-1) + 1
  end subroutine take_region

  pure function joined(letters) result(text)
    character(kind=c_char), intent(in) :: letters(:)
    character(len=size(letters)) :: text
    integer :: i

    text = ""
    do i = 1, size(letters)
      if (letters(i) == c_null_char) return
      text(i:i) = letters(i)
    end do
  end function joined
end module kedge_m_contents
