! The engine's life, and the calls around the regions of a checkpoint that is written.
module kedge_m_engine
  use, intrinsic :: iso_c_binding, only: c_associated, c_double, c_int, c_loc, c_null_ptr, c_ptr, c_size_t
  use kedge_m_attributes, only: attributes_for_c, kedge_attributes
  use kedge_m_c_api
  use kedge_m_c_support, only: c_engine_new_f
  use kedge_m_constants, only: KEDGE_OK
  use kedge_m_failures, only: from_c, on_all_ranks, on_this_rank, settle, to_c
  use kedge_m_options, only: kedge_options
  implicit none
  private
  public :: kedge_init_integer, kedge_finalize, kedge_finalize_for, kedge_free, kedge_is_initialized
  public :: kedge_need_checkpoint, kedge_should_exit
  public :: kedge_create, kedge_create_output, kedge_commit, kedge_abandon
  public :: kedge_level_name, kedge_get_level, kedge_wait, kedge_wait_for, kedge_pin, kedge_unpin
  public :: kedge_pause, kedge_resume

  ! One run's checkpoint engine, made by kedge_init. A copy refers to the same engine. Its component is private to
  ! Kedge.
  type, public :: kedge_engine
    type(c_ptr) :: handle = c_null_ptr
  end type kedge_engine

contains

  ! COLLECTIVE over all ranks of `comm`, an intra-communicator of `use mpi` or mpif.h. Starts the run's next incarnation
  ! and takes over its node-local store. `comm` is duplicated and may be freed afterwards. Without options, uses those
  ! of kedge_options_load. Errors: as for kedge_engine_new in kedge_mpi.h.
  subroutine kedge_init_integer(engine, comm, options, stat, errmsg)
    type(kedge_engine), intent(inout) :: engine
    integer, intent(in) :: comm
    type(kedge_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr), target :: made
    type(c_ptr) :: given
    integer(c_int) :: code

    given = c_null_ptr
    if (present(options)) given = options%handle
    if (c_associated(engine%handle)) then
      code = c_engine_new_f(int(comm, c_int), given, c_null_ptr)  ! refused on all ranks
      call settle(code, on_all_ranks, stat, errmsg, "kedge_init: this engine is in use; call kedge_free first")
      return
    end if
    made = c_null_ptr
    code = c_engine_new_f(int(comm, c_int), given, c_loc(made))
    if (code == KEDGE_OK) engine%handle = made
    call settle(code, on_all_ranks, stat, errmsg)
  end subroutine kedge_init_integer

  ! Local. Whether there is an engine, from kedge_init until kedge_free.
  function kedge_is_initialized(engine) result(initialized)
    type(kedge_engine), intent(in) :: engine
    logical :: initialized

    initialized = c_associated(engine%handle)
  end function kedge_is_initialized

  ! COLLECTIVE. Shuts the engine down as store.on_exit says; afterwards every call but kedge_free is KEDGE_BAD_STATE.
  subroutine kedge_finalize(engine, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_finalize(engine%handle), on_all_ranks, stat, errmsg)
  end subroutine kedge_finalize

  ! COLLECTIVE. Finalizes as kedge_finalize does, but waits for background work `seconds` at most, and 10 s more for a
  ! write that has begun: `done` is false on all ranks if any timed out. The node-local files are then kept for `kedge
  ! drain` or the next start.
  subroutine kedge_finalize_for(engine, seconds, done, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    double precision, intent(in) :: seconds
    logical, intent(out) :: done
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int) :: code, answer

    answer = 0
    code = c_finalize_for(engine%handle, real(seconds, c_double), answer)
    done = code == KEDGE_OK .and. answer /= 0
    call settle(code, on_all_ranks, stat, errmsg)
  end subroutine kedge_finalize_for

  ! Local. Frees the engine, if there is one. Never communicates, safe after MPI_Finalize; call kedge_finalize first to
  ! shut down normally.
  subroutine kedge_free(engine)
    type(kedge_engine), intent(inout) :: engine

    call c_engine_free(engine%handle)
    engine%handle = c_null_ptr
  end subroutine kedge_free

  ! COLLECTIVE. Whether a checkpoint is due, or the job must end and its last checkpoint was not committed yet; the same
  ! on every rank.
  subroutine kedge_need_checkpoint(engine, needed, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    logical, intent(out) :: needed
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int) :: answer, code

    answer = 0
    code = c_need_checkpoint(engine%handle, answer)
    needed = code == KEDGE_OK .and. answer /= 0
    call settle(code, on_all_ranks, stat, errmsg)
  end subroutine kedge_need_checkpoint

  ! COLLECTIVE. Whether the job must end because any rank got a signal of exit.signals or the deadline is near; the same
  ! on every rank. Call it after kedge_need_checkpoint, which then asks for a last checkpoint, and after that
  ! checkpoint.
  subroutine kedge_should_exit(engine, is_ending, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    logical, intent(out) :: is_ending
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int) :: answer, code

    answer = 0
    code = c_should_exit(engine%handle, answer)
    is_ending = code == KEDGE_OK .and. answer /= 0
    call settle(code, on_all_ranks, stat, errmsg)
  end subroutine kedge_should_exit

  ! COLLECTIVE. Begins a checkpoint. `tag`: 1 to 128 of A-Z a-z 0-9 . _ -, not starting with a dot; "latest" is
  ! reserved. Only rank 0's attributes are stored.
  subroutine kedge_create(engine, tag, attributes, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: tag
    type(kedge_attributes), intent(in), target, optional :: attributes
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call begin_commit(c_create, engine, tag, attributes, stat, errmsg)
  end subroutine kedge_create

  ! COLLECTIVE. Begins an output: data for people and other programs, such as a plot, which no restart opens and which
  ! does not count as a checkpoint. Every output is flushed to the prefix. Otherwise as kedge_create.
  subroutine kedge_create_output(engine, tag, attributes, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: tag
    type(kedge_attributes), intent(in), target, optional :: attributes
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call begin_commit(c_create_output, engine, tag, attributes, stat, errmsg)
  end subroutine kedge_create_output

  ! Begins a checkpoint or output with the given C function.
  subroutine begin_commit(begin, engine, tag, attributes, stat, errmsg)
    procedure(c_create) :: begin
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: tag
    type(kedge_attributes), intent(in), target, optional :: attributes
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_attribute), allocatable :: given(:)
    integer(c_int) :: code

    if (present(attributes)) then
      given = attributes_for_c(attributes)
    else
      allocate (given(0))
    end if
    code = begin(engine%handle, to_c(tag), given, size(given, kind=c_size_t))
    call settle(code, on_all_ranks, stat, errmsg)
  end subroutine begin_commit

  ! COLLECTIVE. Seals the checkpoint on all ranks or on none, and reports the first failure since kedge_create.
  subroutine kedge_commit(engine, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_commit(engine%handle), on_all_ranks, stat, errmsg)
  end subroutine kedge_commit

  ! COLLECTIVE. Drops the checkpoint that kedge_create began.
  subroutine kedge_abandon(engine, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_abandon(engine%handle), on_all_ranks, stat, errmsg)
  end subroutine kedge_abandon

  ! "none", "snapshot", "local", "protected", "persistent"; "unknown" for any other number.
  function kedge_level_name(level) result(name)
    integer, intent(in) :: level
    character(len=:), allocatable :: name

    name = from_c(c_level_name(int(level, c_int)))
  end function kedge_level_name

  ! Local. The level that the newest commit of this tag has reached, as far as this rank knows; KEDGE_LEVEL_NONE if it
  ! knows no such commit.
  subroutine kedge_get_level(engine, tag, level, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: tag
    integer, intent(out) :: level
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int) :: answer, code

    answer = 0
    code = c_get_level(engine%handle, to_c(tag), answer)
    level = int(answer)
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine kedge_get_level

  ! COLLECTIVE. Returns when the newest commit of this tag has reached the level.
  subroutine kedge_wait(engine, tag, level, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: tag
    integer, intent(in) :: level
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_wait(engine%handle, to_c(tag), int(level, c_int)), on_all_ranks, stat, errmsg)
  end subroutine kedge_wait

  ! COLLECTIVE. Waits as kedge_wait does, but for a commit that is pending in the background `seconds` at most:
  ! `reached` is false on all ranks if any timed out; the work then continues.
  subroutine kedge_wait_for(engine, tag, level, seconds, reached, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: tag
    integer, intent(in) :: level
    double precision, intent(in) :: seconds
    logical, intent(out) :: reached
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int) :: code, answer

    answer = 0
    code = c_wait_for(engine%handle, to_c(tag), int(level, c_int), real(seconds, c_double), answer)
    reached = answer /= 0
    call settle(code, on_all_ranks, stat, errmsg)
  end subroutine kedge_wait_for

  ! COLLECTIVE. Pins the newest commit of this tag on the prefix: it stays there regardless of persistent.keep.
  subroutine kedge_pin(engine, tag, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: tag
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_pin(engine%handle, to_c(tag)), on_all_ranks, stat, errmsg)
  end subroutine kedge_pin

  ! COLLECTIVE. Unpins the newest commit of this tag on the prefix.
  subroutine kedge_unpin(engine, tag, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: tag
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_unpin(engine%handle, to_c(tag)), on_all_ranks, stat, errmsg)
  end subroutine kedge_unpin

  ! Suspends this rank's background work until kedge_resume, to leave network and memory bandwidth to the program. The
  ! work resumes by itself when a call waits for it, and after at most a quarter of comm.timeout_s per commit. While
  ! paused, do not wait for a rank that may be in kedge_create.
  subroutine kedge_pause(engine, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_pause(engine%handle), on_this_rank, stat, errmsg)
  end subroutine kedge_pause

  ! Resumes this rank's background work.
  subroutine kedge_resume(engine, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_resume(engine%handle), on_this_rank, stat, errmsg)
  end subroutine kedge_resume
end module kedge_m_engine
