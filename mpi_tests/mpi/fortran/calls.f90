! Every call of the module, as meant and otherwise, with engines over communicators of both kinds.
program calls
  use checks, only: check, finish
  use kedge
  use mpi_f08
  use right_calls
  use wrong_calls
  implicit none
  type(kedge_engine) :: engine
  type(MPI_Comm) :: own
  character(len=1000) :: prefix
  integer :: provided, rank, ranks

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_environment_variable("KEDGE_PERSISTENT_PATH", prefix)

  call names_numbers()
  call without_an_engine()
  call with_wrong_options(rank)

  call MPI_Comm_dup(MPI_COMM_WORLD, own)
  call kedge_init(engine, own)
  call MPI_Comm_free(own)
  call writes_a_checkpoint(engine, rank, ranks)
  call with_an_engine_in_use(engine, rank)
  call kedge_finalize(engine)
  call kedge_free(engine)

  call kedge_init(engine, MPI_COMM_WORLD%MPI_VAL)  ! as `use mpi` and mpif.h give it
  call reads_it(engine, rank, ranks)
  call of_attributes(engine)
  call goes_back(engine, trim(prefix))
  call routes_files(engine, rank)
  call on_one_rank(engine, rank, ranks)
  call after_the_end(engine)
  call MPI_Finalize()
  call finish(120)
end program calls
