! Reports failures through `stat` and `errmsg`, or by ending the program.
module kedge_m_failures
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_pointer, c_int, c_null_char, c_ptr, c_size_t
  use kedge_m_c_api, only: c_error_name, c_failure, c_last_error, c_last_failure
  use kedge_m_c_support, only: c_end_program, c_strlen
  use kedge_m_constants, only: KEDGE_BAD_STATE, KEDGE_OK, KEDGE_RANK_FAILED, KEDGE_TIMEOUT
  implicit none
  private
  public :: from_c, to_c, settle, kedge_error_name, kedge_last_error, kedge_last_failure

  ! The last failure in the calling thread.
  type, public :: kedge_failure
    integer :: code = KEDGE_OK           ! KEDGE_OK if nothing has failed yet
    integer :: rank = -1                 ! rank on which it happened, or -1
    integer :: system_errno = 0          ! errno of the system call, or 0
    character(len=:), allocatable :: text  ! one line for people: code, rank, path and what to do
    character(len=:), allocatable :: path  ! the file concerned, or empty
  end type kedge_failure

  ! Which ranks learn of a failure; decides how a program ends that does not pass `stat`.
  integer, parameter, public :: &
    on_all_ranks = 0, &  ! a collective call with one result on all ranks: all end
    on_this_rank = 1, &  ! no other rank knows: this rank ends all
    reported_later = 2   ! a later collective call reports it on all ranks: the program continues until then

contains

  ! Converts a string to C: without trailing blanks, with a final NUL.
  pure function to_c(text) result(closed)
    character(len=*), intent(in) :: text
    character(len=:), allocatable :: closed

    closed = trim(text) // c_null_char
  end function to_c

  ! Converts a string from C; empty if it is NULL.
  function from_c(text) result(copy)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: copy
    character(kind=c_char), pointer :: letters(:)
    integer(c_size_t) :: i, length

    length = 0
    if (c_associated(text)) length = c_strlen(text)
    allocate (character(len=length) :: copy)
    if (length == 0) return
    call c_f_pointer(text, letters, [length])
    do i = 1, length
      copy(i:i) = letters(i)
    end do
  end function from_c

  ! The end of every call that can fail. `text` is the reason if C was not called.
  subroutine settle(code, reach, stat, errmsg, text)
    integer(c_int), intent(in) :: code
    integer, intent(in) :: reach
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(len=*), intent(in), optional :: text
    logical :: alike

    if (present(stat)) stat = int(code)
    if (code == KEDGE_OK) return
    if (present(errmsg)) errmsg = reason()
    if (present(stat)) return
    ! When no checkpoint is being written or read, no later collective call would report it.
    if (reach == reported_later .and. code /= KEDGE_BAD_STATE) return
    alike = reach == on_all_ranks .and. code /= KEDGE_TIMEOUT .and. code /= KEDGE_RANK_FAILED
    call c_end_program(to_c(reason()), merge(1_c_int, 0_c_int, alike))
    error stop 1  ! without MPI

  contains

    function reason()
      character(len=:), allocatable :: reason

      if (present(text)) then
        reason = kedge_error_name(int(code)) // ": " // text
      else
        reason = kedge_last_error()
      end if
    end function reason
  end subroutine settle

  ! The code's name in lower case, e.g. "no_space", "ok"; "unknown" for any other number.
  function kedge_error_name(code) result(name)
    integer, intent(in) :: code
    character(len=:), allocatable :: name

    name = from_c(c_error_name(int(code, c_int)))
  end function kedge_error_name

  ! The text of kedge_last_failure().
  function kedge_last_error() result(text)
    character(len=:), allocatable :: text

    text = from_c(c_last_error())
  end function kedge_last_error

  ! The failure of this thread's last failed call in the library, on any engine; successful calls leave it unchanged.
  function kedge_last_failure() result(failure)
    type(kedge_failure) :: failure
    type(c_failure), pointer :: last

    call c_f_pointer(c_last_failure(), last)
    failure%code = int(last%code)
    failure%rank = int(last%rank)
    failure%system_errno = int(last%system_errno)
    failure%text = from_c(last%text)
    failure%path = from_c(last%path)
  end function kedge_last_failure
end module kedge_m_failures
