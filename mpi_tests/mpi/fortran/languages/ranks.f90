! Ranks of a job whose others are C++ and C: see languages_test.py.
program ranks
  use kedge
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: int32, real64
  implicit none
  interface
    subroutine restore(engine, step, field, found)
      import :: kedge_engine, int32, real64
      type(kedge_engine), intent(in) :: engine
      integer(int32), intent(inout) :: step
      real(real64), intent(inout), allocatable :: field(:)
      logical, intent(out) :: found
    end subroutine restore
  end interface
  type(kedge_engine) :: engine
  integer(int32) :: step
  real(real64), allocatable :: field(:)
  integer :: rank, turn
  logical :: found
  character(len=20) :: tag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call kedge_init(engine, MPI_COMM_WORLD)
  step = 0
  allocate (field(1))
  call restore(engine, step, field, found)
  if (found) found = size(field) == 1000 * (rank + 1)
  if (found) found = all(nint(field) == step + rank)
  print "(a, i0, a, i0, a)", "rank ", rank, ": step ", step, merge(", good", ", none", found)
  do turn = 1, 2
    step = step + 1
    if (allocated(field)) deallocate (field)
    allocate (field(1000 * (rank + 1)))
    field = step + rank
    write (tag, "(a, i0)") "step-", step
    call kedge_create(engine, tag)
    call kedge_save(engine, "step", step)
    call kedge_save(engine, "field", field)
    call kedge_commit(engine)
  end do
  call kedge_finalize(engine)
  call kedge_free(engine)
  call MPI_Finalize()
end program ranks
