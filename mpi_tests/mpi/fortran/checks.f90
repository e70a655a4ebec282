! Checks that are counted: a program goes on after one fails, so that no rank waits for it in vain, and ends with 1.
module checks
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private
  public :: check, check_code, expect_text, finish

  integer :: failed = 0, made = 0

contains

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what

    made = made + 1
    if (condition) return
    failed = failed + 1
    write (error_unit, "(2a)") "FAILED: ", what
  end subroutine check

  subroutine check_code(code, wanted, what, errmsg)
    integer, intent(in) :: code, wanted
    character(len=*), intent(in) :: what
    character(len=*), intent(in), optional :: errmsg
    character(len=60) :: numbers

    write (numbers, "(a, i0, a, i0)") ": code ", code, ", wanted ", wanted
    if (code /= wanted .and. present(errmsg)) then
      call check(.false., what // trim(numbers) // ": " // trim(errmsg))
    else
      call check(code == wanted, what // numbers)
    end if
  end subroutine check_code

  subroutine expect_text(text, part)
    character(len=*), intent(in) :: text, part

    call check(index(text, part) > 0, "'" // part // "' is not in '" // trim(text) // "'")
  end subroutine expect_text

  ! After MPI_Finalize.
  subroutine finish(at_least)
    integer, intent(in) :: at_least

    call check(made >= at_least, "fewer checks than there are")
    if (failed > 0) error stop 1
    write (*, "(i0, a)") made, " checks passed"
  end subroutine finish
end module checks
