! Loads a checkpoint whichever ranks saved it.
module kedge_m_load_all
  use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_int, c_int32_t, c_loc, c_null_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64
  use kedge_m_c_api, only: c_load_all, c_logical_ranks
  use kedge_m_c_types, only: c_want
  use kedge_m_constants, only: KEDGE_OK
  use kedge_m_engine, only: kedge_engine
  use kedge_m_failures, only: on_all_ranks, on_this_rank, settle
  use kedge_m_wants, only: kedge_wants, letters, program_memory, want
  implicit none
  private
  public :: kedge_load_all, kedge_logical_ranks

  ! Contiguous memory that is loaded where the program's has gaps, or other logicals than C.
  type :: buffer
    integer(int8), allocatable :: bytes(:)
    character(kind=c_char), allocatable :: refused(:)  ! why there is none
  end type buffer

contains

  ! COLLECTIVE, between kedge_open and kedge_close. Fills the memory of all wants, different ones on each rank, or none,
  ! from the open checkpoint, whichever ranks saved it and however many there were. The wants stay, so that another
  ! checkpoint can be loaded with them. On failure the memory of all wants is undefined, and all ranks get the same
  ! code: those of kedge_load_all in kedge_want.h. After KEDGE_CORRUPT, kedge_close returns it again, and the next
  ! kedge_open takes an older checkpoint or a rebuilt one.
  subroutine kedge_load_all(engine, wants, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    type(kedge_wants), intent(in), target :: wants
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_want), allocatable :: given(:)
    type(buffer), allocatable, target :: buffers(:)
    integer(c_int) :: code
    integer :: i, count

    count = 0
    if (allocated(wants%all)) count = size(wants%all)
    allocate (given(count), buffers(count))
    do i = 1, count
      call give(wants%all(i), given(i), buffers(i))
    end do
    code = c_load_all(engine%handle, given, int(count, c_size_t))
    do i = 1, merge(count, 0, code == KEDGE_OK)
      if (allocated(buffers(i)%bytes)) call copy_back(buffers(i)%bytes, wants%all(i)%memory)
    end do
    call settle(code, on_all_ranks, stat, errmsg)
  end subroutine kedge_load_all

  ! Local. The ranks, from 0, that saved the open checkpoint and whose files this process reads: this rank alone, or
  ! some, or none, where another number of ranks saved it. Together the processes have each once. KEDGE_BAD_STATE if no
  ! checkpoint is open.
  subroutine kedge_logical_ranks(engine, ranks, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    integer, allocatable, intent(out) :: ranks(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int32_t), allocatable :: known(:)
    integer(c_size_t) :: count
    integer(c_int) :: code

    count = 0
    allocate (known(0))
    code = c_logical_ranks(engine%handle, known, 0_c_size_t, count)
    if (code == KEDGE_OK) then
      deallocate (known)
      allocate (known(count))
      code = c_logical_ranks(engine%handle, known, count, count)
    end if
    ranks = int(known)
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine kedge_logical_ranks

  subroutine give(wanted, given, room)
    type(want), intent(in), target :: wanted
    type(c_want), intent(out) :: given
    type(buffer), intent(inout), target :: room
    integer :: failed

    given%name = c_loc(wanted%name)
    given%data = transfer(wanted%memory%address, c_null_ptr)
    given%dtype = int(wanted%dtype, c_int)
    given%dimensions = size(wanted%shape, kind=c_int)
    given%shape = c_null_ptr
    if (size(wanted%shape) > 0) given%shape = c_loc(wanted%shape)
    given%placement = int(wanted%placement, c_int)
    given%global_shape = c_null_ptr
    given%offset = c_null_ptr
    if (allocated(wanted%offset) .and. size(wanted%shape) > 0) then
      given%global_shape = c_loc(wanted%global_shape)
      given%offset = c_loc(wanted%offset)
    end if
    given%of = c_null_ptr
    if (allocated(wanted%of)) given%of = c_loc(wanted%of)
    given%refused = c_null_ptr
    given%reserved = 0
    if (allocated(wanted%refused)) then
      given%refused = c_loc(wanted%refused)
    else if (wanted%memory%address /= 0 .and. .not. lies_as_c_wants(wanted%memory)) then
      allocate (room%bytes(loaded_bytes(wanted%memory)), stat=failed)
      if (failed == 0) then
        given%data = c_loc(room%bytes)
      else
        room%refused = letters("kedge_load_all: no memory for a copy of a section with gaps, or of logicals")
        given%refused = c_loc(room%refused)
      end if
    end if
  end subroutine give

  pure function loaded_bytes(memory) result(bytes)
    type(program_memory), intent(in) :: memory
    integer(int64) :: bytes

    bytes = product(memory%extents) * merge(1_int64, memory%element_bytes, memory%is_logical)
  end function loaded_bytes

  ! How many of the first dimensions lie without gaps, and the bytes that they have together.
  pure subroutine find_run(memory, dimensions, bytes)
    type(program_memory), intent(in) :: memory
    integer, intent(out) :: dimensions
    integer(int64), intent(out) :: bytes

    bytes = memory%element_bytes
    do dimensions = 0, size(memory%extents) - 1
      associate (extent => memory%extents(dimensions + 1))
        if (extent /= 1 .and. memory%steps(dimensions + 1) /= bytes) return
        bytes = bytes * extent
      end associate
    end do
    dimensions = size(memory%extents)
  end subroutine find_run

  pure function lies_as_c_wants(memory) result(does)
    type(program_memory), intent(in) :: memory
    logical :: does
    integer :: dimensions
    integer(int64) :: bytes

    call find_run(memory, dimensions, bytes)
    does = dimensions == size(memory%extents) .and. .not. memory%is_logical
  end function lies_as_c_wants

  ! To where the program has its elements.
  subroutine copy_back(bytes, memory)
    integer(int8), intent(in) :: bytes(:)
    type(program_memory), intent(in) :: memory
    integer(int8), pointer :: place(:)
    integer(int64) :: run, i, rest, at
    integer :: first, d

    first = 0
    run = memory%element_bytes
    if (.not. memory%is_logical) call find_run(memory, first, run)
    do i = 1, product(memory%extents(first + 1:))
      at = memory%address
      rest = i - 1
      do d = first + 1, size(memory%extents)
        at = at + mod(rest, memory%extents(d)) * memory%steps(d)
        rest = rest / memory%extents(d)
      end do
      call c_f_pointer(transfer(at, c_null_ptr), place, [run])
      if (memory%is_logical) then
        place = logical_bytes(bytes(i) /= 0, run)
      else
        place = bytes((i - 1) * run + 1:i * run)
      end if
    end do
  end subroutine copy_back

  ! A logical of that many bytes, as this compiler has it.
  pure function logical_bytes(value, size_bytes) result(bytes)
    logical, intent(in) :: value
    integer(int64), intent(in) :: size_bytes
    integer(int8) :: bytes(size_bytes)

    select case (size_bytes)
    case (1)
      bytes = transfer(logical(value, int8), bytes)
    case (2)
      bytes = transfer(logical(value, int16), bytes)
    case (4)
      bytes = transfer(logical(value, int32), bytes)
    case default
      bytes = transfer(logical(value, int64), bytes)
    end select
  end function logical_bytes
end module kedge_m_load_all
