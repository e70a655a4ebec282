! Heat spreads over a plate, in Fortran 2008: columns are shared out over the ranks, and the job survives being killed.
! Kedge's part is marked with [kedge]; everything else is an ordinary MPI program.
module heat
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, output_unit, real64
  use kedge
  use mpi_f08
  implicit none
  private
  public :: arguments, plate, make_plate, parse, run

  type :: arguments
    integer :: rows = 384, columns = 512, steps = 200
    character(len=20) :: every = "20"  ! steps between checkpoints; "0" is never
    integer :: die_at = -1, die_rank = -1  ! -1: never, nobody
  end type arguments

  ! This rank's columns of the plate, between the columns next to them (index 0 and count + 1).
  type :: plate
    integer :: rank = 0, ranks = 1
    integer :: rows = 0, columns = 0  ! of the whole plate
    integer :: first = 1, count = 0   ! of this rank's columns
    real(real64), allocatable :: now(:, :)
  end type plate

  interface
    function c_raise(signal) bind(c, name="raise") result(outcome)
      import :: c_int
      implicit none
      integer(c_int), value :: signal
      integer(c_int) :: outcome
    end function c_raise
  end interface
  integer(c_int), parameter :: sigkill = 9

contains

  integer function first_column(p, rank)
    type(plate), intent(in) :: p
    integer, intent(in) :: rank

    first_column = 1 + int(int(p%columns, int64) * rank / p%ranks)
  end function first_column

  ! Sets ready to false and says so if there is no memory or a rank would have no column.
  subroutine make_plate(p, a, ready)
    type(plate), intent(inout) :: p
    type(arguments), intent(in) :: a
    logical, intent(out) :: ready
    integer :: row, column, failed
    real(real64) :: x, y

    ready = .false.
    call MPI_Comm_rank(MPI_COMM_WORLD, p%rank)
    call MPI_Comm_size(MPI_COMM_WORLD, p%ranks)
    p%rows = a%rows
    p%columns = a%columns
    if (p%columns < p%ranks .or. p%rows < 1) then
      if (p%rank == 0) write (error_unit, "(a)") "heat_fortran: every rank needs at least one row and one column"
      return
    end if
    p%first = first_column(p, p%rank)
    p%count = first_column(p, p%rank + 1) - p%first
    allocate (p%now(p%rows, 0:p%count + 1), stat=failed)
    if (failed /= 0) then
      write (error_unit, "(a, i0, a)") "heat_fortran: rank ", p%rank, " is out of memory for its columns"
      return
    end if
    do column = 1, p%count  ! a hot disc on a cold plate
      do row = 1, p%rows
        x = real(2 * (p%first + column - 2), real64) / p%columns - 1
        y = real(2 * (row - 1), real64) / p%rows - 1
        p%now(row, column) = merge(1.0_real64, 0.0_real64, x * x + y * y < 0.25_real64)
      end do
    end do
    ready = .true.
  end subroutine make_plate

  ! One explicit time step; the plate's rim is insulated.
  subroutine advance(p)
    type(plate), intent(inout) :: p
    real(real64), allocatable :: next(:, :)
    integer :: left, right, column, rows

    rows = p%rows
    left = merge(MPI_PROC_NULL, p%rank - 1, p%rank == 0)
    right = merge(MPI_PROC_NULL, p%rank + 1, p%rank + 1 == p%ranks)
    p%now(:, 0) = p%now(:, 1)  ! at the rim there is no neighbour: the own column stands in
    p%now(:, p%count + 1) = p%now(:, p%count)
    call MPI_Sendrecv(p%now(:, 1), rows, MPI_DOUBLE_PRECISION, left, 0, p%now(:, p%count + 1), rows, &
      MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(p%now(:, p%count), rows, MPI_DOUBLE_PRECISION, right, 1, p%now(:, 0), rows, &
      MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    allocate (next(rows, 0:p%count + 1))
    do column = 1, p%count
      associate (here => p%now(:, column))
        next(:, column) = here + 0.2_real64 * (p%now(:, column - 1) + p%now(:, column + 1) - 4 * here &
          + [here(1), here(:rows - 1)] + [here(2:), here(rows)])
      end associate
    end do
    call move_alloc(next, p%now)
  end subroutine advance

  ! Over the bits of the whole field in global order, on rank 0: a polynomial modulo a prime. Rank by rank: each goes on
  ! where the one to its left ended.
  function checksum(p) result(hash)
    type(plate), intent(in) :: p
    integer(int64) :: hash
    integer(int64), parameter :: prime = 2147483647_int64, base = 65599_int64, bits32 = 4294967295_int64
    integer(int32) :: halves(2)
    integer :: row, column, i

    hash = 1
    if (p%rank > 0) then
      call MPI_Recv(hash, 1, MPI_INTEGER8, p%rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    end if
    do column = 1, p%count
      do row = 1, p%rows
        halves = transfer(p%now(row, column), halves)
        do i = 1, 2
          hash = mod(hash * base + iand(int(halves(i), int64), bits32), prime)
        end do
      end do
    end do
    if (p%ranks == 1) return
    call MPI_Send(hash, 1, MPI_INTEGER8, mod(p%rank + 1, p%ranks), 2, MPI_COMM_WORLD)
    if (p%rank == 0) call MPI_Recv(hash, 1, MPI_INTEGER8, p%ranks - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end function checksum

  ! [kedge] COLLECTIVE. Restores the newest checkpoint, if there is one, whatever number of ranks saved it, and sets
  ! step. Damage is detected by kedge_close at the latest; the loop then opens the checkpoint before. Other failures end
  ! the program.
  subroutine restore(engine, p, step)
    type(kedge_engine), intent(in) :: engine
    type(plate), intent(inout), target :: p
    integer, intent(inout), target :: step
    type(kedge_wants) :: wants
    type(kedge_info) :: info
    character(len=500) :: reason
    logical :: found
    integer :: code

    call kedge_want(wants, "temperature", p%now(:, 1:p%count), kedge_shard([p%rows, p%columns], [1, p%first]))
    call kedge_want(wants, "step", step, kedge_replicated)
    do
      call kedge_open(engine, found)
      if (.not. found) return
      call kedge_load_all(engine, wants, stat=code, errmsg=reason)
      if (code == KEDGE_OK .or. code == KEDGE_CORRUPT) call kedge_close(engine, stat=code, errmsg=reason)
      if (code == KEDGE_OK) exit
      if (code /= KEDGE_CORRUPT) call stop_all(reason)
    end do
    call kedge_get_info(engine, info)
    if (p%rank /= 0) return
    write (output_unit, "(a, 1x, a, 1x, i0, 1x, a, 1x, i0)") "resumed", trim(info%tag), step, &
      kedge_source_name(info%source), info%total_bytes
    flush (output_unit)
  end subroutine restore

  ! [kedge] COLLECTIVE. One checkpoint, on all ranks or on none.
  subroutine save(engine, p, step)
    type(kedge_engine), intent(in) :: engine
    type(plate), intent(in) :: p
    integer, intent(in) :: step
    type(kedge_attributes) :: attributes
    character(len=11) :: tag

    write (tag, "(a, i6.6)") "step-", step
    call kedge_set_attribute(attributes, "step", step)
    call kedge_set_attribute(attributes, "program", "heat_fortran")
    call kedge_create(engine, tag, attributes)
    call kedge_save(engine, "temperature", p%now(:, 1:p%count), kedge_shard([p%rows, p%columns], [1, p%first]))
    call kedge_save(engine, "step", step, kedge_replicated)
    call kedge_commit(engine)
  end subroutine save

  ! COLLECTIVE. A call of Kedge that fails and is not asked for `stat` ends the program on all ranks.
  subroutine run(a, p)
    type(arguments), intent(in) :: a
    type(plate), intent(inout), target :: p
    type(kedge_options) :: options
    type(kedge_engine) :: engine
    integer, target :: step
    integer :: computed
    integer(int64) :: field
    logical :: needed, is_ending
    character(len=60) :: fingerprint  ! another plate must not go on from this one's checkpoints

    step = 0
    computed = 0
    write (fingerprint, "(a, i0, a, i0)") "heat_fortran, ", a%rows, " x ", a%columns
    call kedge_options_load(options)                              ! [kedge]
    call kedge_options_set(options, "fingerprint", fingerprint)   ! [kedge]
    call kedge_options_set(options, "schedule.seconds", "0")      ! [kedge] --every 0: none
    call kedge_options_set(options, "schedule.overhead", "0")
    call kedge_options_set(options, "schedule.every", a%every)    ! [kedge] the next line reports a bad value
    call kedge_init(engine, MPI_COMM_WORLD, options)              ! [kedge]
    call restore(engine, p, step)                                 ! [kedge]
    do while (step < a%steps)
      if (step == a%die_at .and. p%rank == a%die_rank) then
        if (c_raise(sigkill) /= 0) error stop 1
      end if
      call advance(p)
      step = step + 1
      computed = computed + 1
      call kedge_need_checkpoint(engine, needed)                  ! [kedge]
      if (needed) call save(engine, p, step)                      ! [kedge]
      call kedge_should_exit(engine, is_ending)                   ! [kedge]
      if (is_ending) exit
    end do
    call kedge_finalize(engine)                                   ! [kedge]
    call kedge_free(engine)
    call kedge_options_free(options)
    field = checksum(p)
    if (p%rank == 0 .and. step < a%steps) write (output_unit, "(a, i0, a)") "stopped ", step, "; start it again to go on"
    if (p%rank == 0) write (output_unit, "(a, i0, /, a, z16.16)") "steps computed ", computed, "checksum ", field
  end subroutine run

  ! Sets ready to false and says so if the command line is not understood.
  subroutine parse(a, ready)
    type(arguments), intent(inout) :: a
    logical, intent(out) :: ready
    character(len=20) :: option, word
    integer :: i, number, failed

    ready = .true.
    do i = 1, command_argument_count(), 2
      call get_command_argument(i, option)
      word = ""
      if (i < command_argument_count()) call get_command_argument(i + 1, word)
      read (word, "(i20)", iostat=failed) number
      if (word == "") failed = 1
      select case (option)
      case ("--rows")
        a%rows = number
      case ("--columns")
        a%columns = number
      case ("--steps")
        a%steps = number
      case ("--every")
        a%every = word  ! Kedge reads it
        failed = merge(1, 0, word == "")
      case ("--die-at")
        a%die_at = number
      case ("--die-rank")
        a%die_rank = number
      case default
        failed = 1
      end select
      if (failed == 0) cycle
      write (error_unit, "(3a)") "heat_fortran: ", trim(option), " is unknown or requires a number"
      ready = .false.
      return
    end do
  end subroutine parse

  subroutine stop_all(reason)
    character(len=*), intent(in) :: reason

    write (error_unit, "(2a)") "heat_fortran: ", trim(reason)
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine stop_all
end module heat

program heat_fortran
  use heat, only: arguments, make_plate, parse, plate, run
  use mpi_f08
  implicit none
  type(arguments) :: given
  type(plate), target :: field
  logical :: ready
  integer :: provided

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  call parse(given, ready)
  if (ready) call make_plate(field, given, ready)
  call MPI_Allreduce(MPI_IN_PLACE, ready, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD)
  if (ready) call run(given, field)
  call MPI_Finalize()
  if (.not. ready) error stop 1
end program heat_fortran
