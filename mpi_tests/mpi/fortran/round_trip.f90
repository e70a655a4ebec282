! Every type of elements and every rank, and sections of arrays, through a checkpoint and back, byte for byte.
program round_trip
  use checks, only: check, finish
  use kedge
  use mpi
  use round_trip_int8
  use round_trip_int16
  use round_trip_int32
  use round_trip_int64
  use round_trip_logical8
  use round_trip_logical16
  use round_trip_logical32
  use round_trip_logical64
  use round_trip_real32
  use round_trip_real64
  use round_trip_complex32
  use round_trip_complex64
  use round_trip_text
  implicit none
  type(kedge_engine) :: engine
  logical :: found
  integer :: provided, code

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, code)
  call kedge_init(engine, MPI_COMM_WORLD)
  call kedge_create(engine, "all")
  call save_int8(engine)
  call save_int16(engine)
  call save_int32(engine)
  call save_int64(engine)
  call save_logical8(engine)
  call save_logical16(engine)
  call save_logical32(engine)
  call save_logical64(engine)
  call save_real32(engine)
  call save_real64(engine)
  call save_complex32(engine)
  call save_complex64(engine)
  call save_text(engine)
  call kedge_commit(engine)
  call kedge_open(engine, found)
  call check(found, "nothing was committed")
  call load_int8(engine)
  call load_int16(engine)
  call load_int32(engine)
  call load_int64(engine)
  call load_logical8(engine)
  call load_logical16(engine)
  call load_logical32(engine)
  call load_logical64(engine)
  call load_real32(engine)
  call load_real64(engine)
  call load_complex32(engine)
  call load_complex64(engine)
  call load_text(engine)
  call kedge_close(engine)
  call kedge_finalize_for(engine, 600d0, found)
  call check(found, "kedge_finalize_for gave up")
  call kedge_free(engine)
  call MPI_Finalize(code)
  call finish(13 * (4 + 7 * 10))
end program round_trip
