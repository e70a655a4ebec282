! Calls that cannot succeed: what they return, on the rank that makes them and on the others.
module wrong_calls
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check, check_code, expect_text
  use kedge
  use mpi_f08
  implicit none
  private
  public :: without_an_engine, with_wrong_options, with_an_engine_in_use, on_one_rank, of_attributes, after_the_end

contains

  ! The same code on all ranks, and this one.
  subroutine check_all(code, wanted, what, reason)
    integer, intent(in) :: code, wanted
    character(len=*), intent(in) :: what
    character(len=*), intent(in), optional :: reason
    integer :: least, greatest

    call check_code(code, wanted, what, reason)
    call MPI_Allreduce(code, least, 1, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD)
    call MPI_Allreduce(code, greatest, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
    call check(least == greatest, what // ": another code on another rank")
  end subroutine check_all

  subroutine without_an_engine()
    type(kedge_engine) :: engine
    type(kedge_options) :: options
    type(kedge_counters) :: counters
    type(kedge_wants) :: wants
    integer, allocatable :: saved_by(:)
    character(len=:), allocatable :: path, value
    character(len=40) :: short
    logical :: answer
    integer :: code, level

    call check(.not. kedge_is_initialized(engine), "an engine that was never made")
    call kedge_free(engine)
    call kedge_options_free(options)
    call kedge_commit(engine, stat=code, errmsg=short)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_commit without an engine")
    call expect_text(short, "invalid_argument")
    call kedge_need_checkpoint(engine, answer, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_need_checkpoint without an engine")
    call check(.not. answer, "an answer without an engine")
    call kedge_should_exit(engine, answer, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_should_exit without an engine")
    call check(.not. answer, "an end without an engine")
    call kedge_open(engine, answer, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_open without an engine")
    call kedge_save(engine, "x", 1)  ! goes on: kedge_commit reports it
    call kedge_load(engine, "x", level, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_load without an engine")
    call kedge_load_all(engine, wants, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_load_all without an engine")
    call kedge_logical_ranks(engine, saved_by, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_logical_ranks without an engine")
    call check(size(saved_by) == 0, "ranks without an engine")
    call kedge_route_out(engine, "x", path, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_route_out without an engine")
    call check(path == "", "a path without an engine")
    call kedge_get_level(engine, "x", level, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_get_level without an engine")
    call kedge_get_counters(engine, counters, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_get_counters without an engine")
    call kedge_options_get(options, "store.path", value, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_options_get without options")
  end subroutine without_an_engine

  subroutine with_wrong_options(rank)
    integer, intent(in) :: rank
    type(kedge_engine) :: engine
    type(kedge_options) :: options
    character(len=:), allocatable :: value
    character(len=400) :: reason
    integer :: code

    call kedge_options_load(options, stat=code)
    call check_code(code, KEDGE_OK, "kedge_options_load")
    call kedge_options_set(options, "schedule.every", "7", stat=code)
    call check_code(code, KEDGE_OK, "kedge_options_set")
    call kedge_options_get(options, "schedule.every", value)
    call check(value == "7" .and. len(value) == 1, "kedge_options_get: " // value)
    call kedge_options_get(options, "schedule.evry", value, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_options_get of no option")
    if (rank == 0) call kedge_options_set(options, "schedule.evry", "7")  ! goes on: kedge_init reports it
    call kedge_init(engine, MPI_COMM_WORLD, options, stat=code, errmsg=reason)
    call check_all(code, KEDGE_INVALID_ARGUMENT, "kedge_init with a wrong option on rank 0", reason)
    call expect_text(reason, "schedule.evry")
    call check(.not. kedge_is_initialized(engine), "an engine after kedge_init failed")
    call kedge_options_free(options)
  end subroutine with_wrong_options

  ! Rank 0 hands in an engine that is in use; nobody gets a new one, and the old one goes on.
  subroutine with_an_engine_in_use(used, rank)
    type(kedge_engine), intent(inout) :: used
    integer, intent(in) :: rank
    type(kedge_engine) :: engine
    character(len=400) :: reason
    integer :: code

    if (rank == 0) engine = used
    call kedge_init(engine, MPI_COMM_WORLD%MPI_VAL, stat=code, errmsg=reason)
    call check_all(code, KEDGE_INVALID_ARGUMENT, "kedge_init of an engine in use", reason)
    if (rank == 0) call expect_text(reason, "call kedge_free first")
    call check(kedge_is_initialized(engine) .eqv. rank == 0, "which rank has an engine")
    call check(kedge_is_initialized(used), "the engine in use")
  end subroutine with_an_engine_in_use

  ! Only the last rank is wrong; all learn of it.
  subroutine on_one_rank(engine, rank, ranks)
    type(kedge_engine), intent(in) :: engine
    integer, intent(in) :: rank, ranks
    type(kedge_placement) :: placement
    real(real64) :: field(4, 4)
    character(len=400) :: reason
    type(kedge_failure) :: failure
    logical :: wrong, found, overlaps
    integer :: code, number, try

    wrong = rank == ranks - 1
    call kedge_create(engine, merge("a/b ", "good", wrong), stat=code, errmsg=reason)
    call check_all(code, KEDGE_INVALID_ARGUMENT, "kedge_create", reason)
    call kedge_wait(engine, "files", merge(99, KEDGE_LEVEL_LOCAL, wrong), stat=code)
    call check_all(code, KEDGE_INVALID_ARGUMENT, "kedge_wait")
    call kedge_open(engine, found, newer=merge(5, KEDGE_KEEP_NEWER, wrong), stat=code)
    call check_all(code, KEDGE_INVALID_ARGUMENT, "kedge_open")

    field = 1
    do try = 1, 5
      placement = kedge_shard([4, 4 * ranks], [1, 4 * rank + 1])
      if (wrong .and. try == 1) placement = kedge_shard([4, 4 * ranks], [1])
      if (wrong .and. try == 2) placement = kedge_shard([4], [1])
      if (wrong .and. try == 3) placement = kedge_shard([4, 4 * ranks], [1, 4 * rank])
      if (wrong .and. try == 4) placement = kedge_shard([4, 4 * ranks], [0, 4 * rank + 1])
      if (wrong .and. try == 5) placement = kedge_shard([4, 4 * ranks], [2, 4 * rank + 1])
      if (.not. wrong .and. try == 1) placement = kedge_shard([4, 4 * ranks], int([1, 4 * rank + 1], int64))
      if (.not. wrong .and. try == 2) placement = kedge_shard(int([4, 4 * ranks], int64), [1, 4 * rank + 1])
      call kedge_create(engine, "wrong")
      call kedge_save(engine, "field", field, placement, stat=code, errmsg=reason)
      if (wrong .and. (try < 3 .or. try == 4)) then
        call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_save of a wrong shard", reason)
        call expect_text(reason, "field: kedge_shard: ")
      end if
      call kedge_commit(engine, stat=code, errmsg=reason)
      overlaps = try == 3 .and. ranks > 1  ! alone it is a start of 0
      call check_all(code, merge(KEDGE_MISMATCH, KEDGE_INVALID_ARGUMENT, overlaps), "kedge_commit", reason)
      call expect_text(reason, "field")
      if (try < 3) call expect_text(reason, "field: kedge_shard: ")  ! on all ranks, what was wrong on one
      if (try == 4) call expect_text(reason, "field: kedge_shard: start(1) is 0; the first index is 1")
    end do
    call check(kedge_last_error() == reason, "kedge_last_error is not errmsg")
    failure = kedge_last_failure()
    call check_code(failure%code, KEDGE_INVALID_ARGUMENT, "kedge_last_failure")
    call check(failure%text == reason .and. failure%system_errno == 0 .and. failure%path == "", "a failure's parts")

    call kedge_create(engine, "right")
    call kedge_save(engine, "field", field)
    call kedge_commit(engine)
    call kedge_open(engine, found)
    number = -5
    if (wrong) call kedge_load(engine, "field", number)  ! goes on: kedge_close reports it
    call kedge_load(engine, "field", field, stat=code)
    call check_code(code, KEDGE_OK, "kedge_load")
    call check(number == -5, "a load that was refused changed the variable")
    call kedge_load(engine, "field", field(:, ::2), stat=code)
    call check_code(code, KEDGE_MISMATCH, "kedge_load into a section of another shape")
    call kedge_close(engine, stat=code)
    call check_all(code, KEDGE_MISMATCH, "kedge_close")
  end subroutine on_one_rank

  subroutine of_attributes(engine)
    type(kedge_engine), intent(in) :: engine
    type(kedge_attributes) :: attributes
    character(len=:), allocatable :: text
    character(len=200) :: reason
    logical :: found
    integer :: code, number
    integer(int64) :: large
    real(real64) :: time

    call kedge_set_attribute(attributes, "", 1)
    call kedge_create(engine, "attributes", attributes, stat=code)
    call check_all(code, KEDGE_INVALID_ARGUMENT, "an attribute without a key")
    call kedge_open(engine, found, tag="step-1")
    number = 3
    call kedge_get_attribute(engine, "large", number, stat=code, errmsg=reason)
    call check_code(code, KEDGE_MISMATCH, "a number too great for 32 bits")
    call expect_text(reason, "mismatch: large: this attribute does not fit")
    call kedge_get_attribute(engine, "sizes", number, stat=code, errmsg=reason)
    call check_code(code, KEDGE_MISMATCH, "three numbers for one")
    call expect_text(reason, "read it into an allocatable array")
    call kedge_get_attribute(engine, "none", large, stat=code)
    call check_code(code, KEDGE_MISMATCH, "no number for one")
    call kedge_get_attribute(engine, "step", time, stat=code)
    call check_code(code, KEDGE_MISMATCH, "an integer for a real")
    call kedge_get_attribute(engine, "step", text, stat=code)
    call check_code(code, KEDGE_MISMATCH, "an integer for a string")
    call kedge_get_attribute(engine, "no such key", number, stat=code)
    call check_code(code, KEDGE_NOT_FOUND, "an attribute that is not there")
    call check(number == 3, "a failed call changed the variable")
    call kedge_close(engine)
  end subroutine of_attributes

  subroutine after_the_end(engine)
    type(kedge_engine), intent(inout) :: engine
    integer :: code

    call kedge_finalize(engine, stat=code)
    call check_code(code, KEDGE_OK, "kedge_finalize", kedge_last_error())
    call kedge_create(engine, "late", stat=code)
    call check_all(code, KEDGE_BAD_STATE, "kedge_create after kedge_finalize")
    call kedge_free(engine)
    call check(.not. kedge_is_initialized(engine), "an engine that was freed")
  end subroutine after_the_end
end module wrong_calls
