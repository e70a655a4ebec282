! README's calls from Fortran, in a program: an error stops it. The second of two engines loads what the first committed.
program from_fortran
  use kedge
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
  implicit none
  interface
    integer(c_int) function setenv(name, value, overwrite) bind(c)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*), value(*)
      integer(c_int), value :: overwrite
    end function setenv
  end interface
  type(kedge_engine) :: engine
  logical :: found
  integer, parameter :: rows = 6, of_one = 4
  integer :: rank, ranks, columns, first, start
  real, allocatable :: field(:, :)

  if (setenv("KEDGE_OPEN_CHAINED" // c_null_char, "1" // c_null_char, 1) /= 0) error stop "no environment"
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  columns = of_one * ranks
  first = of_one * rank + 1
  allocate (field(rows, of_one))
  do start = 1, 2
    field = merge(real(rank), -1.0, start == 1)
    ! [example]
    if (found .neqv. start == 2) error stop "the second start should find what the first one saved, and it alone"
    if (any(field /= real(rank))) error stop "the field was not restored"
  end do
  call MPI_Finalize()
end program from_fortran
