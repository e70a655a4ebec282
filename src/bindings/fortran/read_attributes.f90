! Attributes of the checkpoint that is open, or was opened last.
module kedge_m_read_attributes
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_size_t
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use kedge_m_c_api, only: c_get_attribute_double, c_get_attribute_int64, c_get_attribute_string
  use kedge_m_constants, only: KEDGE_MISMATCH, KEDGE_OK
  use kedge_m_engine, only: kedge_engine
  use kedge_m_failures, only: on_this_rank, settle, to_c
  implicit none
  private
  public :: kedge_get_attribute

  ! Local. Returns a number, an array of numbers or a string, which is allocated to its length. KEDGE_NOT_FOUND: no such
  ! key; KEDGE_MISMATCH: it has another type, or is not a single number that fits.
  interface kedge_get_attribute
    module procedure get_int32, get_int64, get_real64, get_string, get_int64_array, get_real64_array
  end interface kedge_get_attribute

  character(len=*), parameter :: not_single = "this attribute is an array; read it into an allocatable array"
  character(len=*), parameter :: too_great = "this attribute does not fit in integer(int32); read it as integer(int64)"

contains

  subroutine get_int32(engine, key, value, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: key
    integer(int32), intent(inout) :: value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(int64) :: number
    integer(c_int) :: code
    logical :: single, fits

    call read_int64(engine, key, number, single, code)
    fits = .true.
    if (code == KEDGE_OK .and. single) fits = number >= -huge(value) - 1_int64 .and. number <= huge(value)
    if (code == KEDGE_OK .and. single .and. fits) value = int(number, int32)
    if (fits) then
      call settle_single(code, key, single, stat, errmsg)
    else
      call settle(int(KEDGE_MISMATCH, c_int), on_this_rank, stat, errmsg, trim(key) // ": " // too_great)
    end if
  end subroutine get_int32

  subroutine get_int64(engine, key, value, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: key
    integer(int64), intent(inout) :: value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(int64) :: number
    integer(c_int) :: code
    logical :: single

    call read_int64(engine, key, number, single, code)
    if (code == KEDGE_OK .and. single) value = number
    call settle_single(code, key, single, stat, errmsg)
  end subroutine get_int64

  subroutine get_real64(engine, key, value, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: key
    real(real64), intent(inout) :: value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    real(c_double) :: number(1)
    integer(c_size_t) :: count
    integer(c_int) :: code

    count = 0
    code = c_get_attribute_double(engine%handle, to_c(key), number, 1_c_size_t, count)
    if (code == KEDGE_OK .and. count == 1) value = number(1)
    call settle_single(code, key, count == 1, stat, errmsg)
  end subroutine get_real64

  subroutine get_int64_array(engine, key, value, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: key
    integer(int64), allocatable, intent(inout) :: value(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int64_t), allocatable :: numbers(:)
    integer(c_int64_t) :: none(1)
    integer(c_size_t) :: count
    integer(c_int) :: code

    code = c_get_attribute_int64(engine%handle, to_c(key), none, 0_c_size_t, count)
    if (code == KEDGE_OK) then
      allocate (numbers(count))
      code = c_get_attribute_int64(engine%handle, to_c(key), numbers, size(numbers, kind=c_size_t), count)
      if (code == KEDGE_OK) call move_alloc(numbers, value)
    end if
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine get_int64_array

  subroutine get_real64_array(engine, key, value, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: key
    real(real64), allocatable, intent(inout) :: value(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    real(c_double), allocatable :: numbers(:)
    real(c_double) :: none(1)
    integer(c_size_t) :: count
    integer(c_int) :: code

    code = c_get_attribute_double(engine%handle, to_c(key), none, 0_c_size_t, count)
    if (code == KEDGE_OK) then
      allocate (numbers(count))
      code = c_get_attribute_double(engine%handle, to_c(key), numbers, size(numbers, kind=c_size_t), count)
      if (code == KEDGE_OK) call move_alloc(numbers, value)
    end if
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine get_real64_array

  subroutine get_string(engine, key, value, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: key
    character(len=:), allocatable, intent(inout) :: value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char) :: none(1)
    integer(c_size_t) :: length
    integer(c_int) :: code

    code = c_get_attribute_string(engine%handle, to_c(key), none, 1_c_size_t, length)
    if (code == KEDGE_OK) call read_string(length)
    call settle(code, on_this_rank, stat, errmsg)

  contains

    subroutine read_string(known_length)
      integer(c_size_t), intent(in) :: known_length
      character(len=known_length + 1) :: buffer

      code = c_get_attribute_string(engine%handle, to_c(key), buffer, known_length + 1, length)
      if (code == KEDGE_OK) value = buffer(:known_length)
    end subroutine read_string
  end subroutine get_string

  subroutine read_int64(engine, key, number, single, code)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: key
    integer(int64), intent(out) :: number
    logical, intent(out) :: single
    integer(c_int), intent(out) :: code
    integer(c_int64_t) :: numbers(1)
    integer(c_size_t) :: count

    numbers = 0
    count = 0
    code = c_get_attribute_int64(engine%handle, to_c(key), numbers, 1_c_size_t, count)
    number = numbers(1)
    single = count == 1
  end subroutine read_int64

  subroutine settle_single(code, key, single, stat, errmsg)
    integer(c_int), intent(in) :: code
    character(len=*), intent(in) :: key
    logical, intent(in) :: single
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    if (code == KEDGE_OK .and. .not. single) then
      call settle(int(KEDGE_MISMATCH, c_int), on_this_rank, stat, errmsg, trim(key) // ": " // not_single)
    else
      call settle(code, on_this_rank, stat, errmsg)
    end if
  end subroutine settle_single
end module kedge_m_read_attributes
