! A checkpoint whose errors the program handles itself.
program fortran_stat
  use kedge
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  type(kedge_engine) :: engine
  character(len=*), parameter :: tag = "step-1"
  character(len=500) :: reason
  integer :: code, rank
  real :: field(4) = 1

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call kedge_init(engine, MPI_COMM_WORLD)
  ! [example]
  if (code /= KEDGE_OK) error stop "the checkpoint failed"
  call kedge_finalize(engine)
  call kedge_free(engine)
  call MPI_Finalize()
end program fortran_stat
