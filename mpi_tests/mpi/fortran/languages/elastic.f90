! Loads what any number of ranks saved in any language, and saves the next step: see other_ranks_test.py.
program elastic
  use kedge
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: int32, real64
  implicit none
  integer, parameter :: columns = 10, rows = 12  ! as C counts them: the first index is the column
  type(kedge_engine) :: engine
  type(kedge_wants) :: wants
  type(kedge_info) :: info
  integer(int32), target :: step, own
  real(real64), target :: plate(0:columns + 1, 0:rows + 1)  ! in a larger one, so that the block has gaps
  real(real64) :: element(columns, rows)
  integer :: rank, ranks, first, last, i
  logical :: found, good
  character(len=20) :: tag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call kedge_init(engine, MPI_COMM_WORLD)
  element = reshape([(real(i, real64), i=0, size(element) - 1)], shape(element))
  first = max(1, rows * rank / ranks)  ! one row more is loaded
  last = rows * (rank + 1) / ranks
  step = 0
  plate = -1
  call kedge_open(engine, found)
  if (found) then
    call kedge_get_info(engine, info)
    call kedge_want(wants, "field", plate(1:columns, first:last), kedge_shard([columns, rows], start=[1, first]))
    call kedge_want(wants, "step", step, kedge_replicated)
    call kedge_want(wants, "own", own, of=mod(rank, info%world_size))
    call kedge_load_all(engine, wants)
    call kedge_close(engine)
    good = own == 100 * step + mod(rank, info%world_size) .and. &
      all(nint(plate(1:columns, first:last)) == nint(1000 * step + element(:, first:last)))
    print "(a, i0, a, i0, a, i0, 2a)", "rank ", rank, ": step ", step, " of ", info%world_size, " ranks, ", &
      trim(merge("good ", "wrong", good))
  else
    print "(a, i0, a)", "rank ", rank, ": none"
  end if
  step = step + 1
  first = rows * rank / ranks + 1
  write (tag, "(a, i0)") "step-", step
  call kedge_create(engine, tag)
  call kedge_save(engine, "field", 1000 * step + element(:, first:last), kedge_shard([columns, rows], [1, first]))
  call kedge_save(engine, "step", step, kedge_replicated)
  call kedge_save(engine, "own", 100 * step + rank)
  call kedge_commit(engine)
  call kedge_finalize(engine)
  call kedge_free(engine)
  call MPI_Finalize()
end program elastic
