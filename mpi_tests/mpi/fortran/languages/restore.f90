subroutine restore(engine, step, field, found)
  use kedge
  use, intrinsic :: iso_fortran_env, only: int32, real64, error_unit
  implicit none
  type(kedge_engine), intent(in) :: engine
  integer(int32), intent(inout) :: step
  real(real64), intent(inout), allocatable :: field(:)
  logical, intent(out) :: found
  type(kedge_region) :: saved
  integer :: code
  character(len=500) :: reason

  do
    call kedge_open(engine, found)
    if (.not. found) return
    call kedge_find_region(engine, "field", saved)    ! as a State does with a vector
    if (saved%shape(1) /= size(field)) then
      deallocate (field)
      allocate (field(saved%shape(1)))
    end if
    call kedge_load(engine, "step", step)
    call kedge_load(engine, "field", field)
    call kedge_close(engine, stat=code, errmsg=reason)
    if (code /= KEDGE_CORRUPT) exit                   ! else it was damaged: the next one, on all ranks
  end do
  if (code == KEDGE_OK) return
  write (error_unit, "(a)") trim(reason)
  error stop
end subroutine restore
