! Ends by a failure that it does not ask for. Usage: fortran_stops all | one | unset | early | late | save | load
program stops
  use kedge
  use mpi_f08
  implicit none
  type(kedge_engine) :: engine
  type(kedge_options) :: options
  character(len=10) :: manner
  character(len=:), allocatable :: path
  integer :: provided, rank, number
  logical :: found

  call get_command_argument(1, manner)
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call kedge_init(engine, MPI_COMM_WORLD)
  select case (manner)
  case ("all")
    call kedge_create(engine, "a tag with spaces")
  case ("one")  ! one rank alone: the others are in a call that waits for it
    if (rank == 1) call kedge_route_out(engine, "file", path)
    call kedge_create(engine, "tag")
    call kedge_commit(engine)
    call MPI_Barrier(MPI_COMM_WORLD)
  case ("unset")  ! these options were not loaded, so kedge_init would not know of it
    if (rank == 1) call kedge_options_set(options, "redundancy.every", "2")
    call MPI_Barrier(MPI_COMM_WORLD)
  case ("early")  ! kedge_commit would not know of it
    call kedge_save(engine, "number", rank)
    write (*, "(a)") "went on"
    call kedge_create(engine, "tag")
  case ("late")
    call kedge_open(engine, found)
    call kedge_load(engine, "number", number)  ! nothing was found
    write (*, "(a)") "went on"
  case ("save")  ! goes on until kedge_commit
    call kedge_create(engine, "tag")
    if (rank == 1) call kedge_save(engine, "", rank)
    write (*, "(a)") "went on"
    call kedge_commit(engine)
  case ("load")
    call kedge_create(engine, "tag")
    call kedge_save(engine, "number", rank)
    call kedge_commit(engine)
    call kedge_open(engine, found)
    if (rank == 1) call kedge_load(engine, "another", number)
    write (*, "(a)") "went on"
    call kedge_close(engine)
  case default
    error stop 2
  end select
  write (*, "(a)") "came to its end"
  call MPI_Finalize()
end program stops
