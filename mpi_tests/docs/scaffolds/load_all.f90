! Two ranks save columns of an array, and load them with one column more on each side.
program load_all
  use kedge
  use mpi_f08
  implicit none
  integer, parameter :: rows = 3, columns = 8
  type(kedge_engine) :: engine
  type(kedge_wants) :: wants
  real, target :: plate(0:rows + 1, 0:columns + 1)
  integer, target :: step, entry
  character(len=500) :: reason
  integer :: code, rank, first, last, i
  logical :: found

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call kedge_init(engine, MPI_COMM_WORLD)
  plate = reshape([(real(i), i=1, size(plate))], shape(plate))
  call kedge_create(engine, "a")
  first = 4 * rank + 1
  call kedge_save(engine, "field", plate(1:rows, first:first + 3), kedge_shard([rows, columns], [1, first]))
  call kedge_save(engine, "step", 7, kedge_replicated)
  call kedge_save(engine, "log", 100 + rank)
  call kedge_commit(engine)
  plate(1:rows, 1:columns) = 0
  first = merge(1, 4, rank == 0)
  last = first + 4
  code = KEDGE_OK
  ! [example]
  if (code /= KEDGE_OK) error stop "it failed"
  do i = 1, size(plate)
    associate (row => mod(i - 1, rows + 2), column => (i - 1) / (rows + 2))
      if (row < 1 .or. row > rows .or. column < first .or. column > last) cycle
      if (nint(plate(row, column)) /= i) error stop "a wrong element"
    end associate
  end do
  if (step /= 7 .or. entry /= 100) error stop "a wrong number"
  call kedge_finalize(engine)
  call kedge_free(engine)
  call MPI_Finalize()
end program load_all
