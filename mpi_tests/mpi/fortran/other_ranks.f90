! What some ranks saved is loaded by fewer and by more, into sections with gaps as well; a want that cannot be is the same
! error on all ranks.
program other_ranks
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use checks, only: check, check_code, expect_text, finish
  use kedge
  use mpi_f08
  implicit none
  integer, parameter :: rows = 5, columns = 13, letters = 4
  real(real64), parameter :: untouched = -1
  integer :: provided, rank, ranks

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call with_the_first(ranks, saved_by=0)
  call with_the_first(ranks - 1, saved_by=ranks)
  call with_the_first(1, saved_by=ranks - 1)
  call with_the_first(ranks, saved_by=1)
  call MPI_Finalize()
  call finish(20)

contains

  ! Begins, loads what so many ranks saved, and saves it again; the other ranks wait.
  subroutine with_the_first(count, saved_by)
    integer, intent(in) :: count, saved_by
    type(MPI_Comm) :: world
    type(kedge_engine) :: engine

    call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, rank < count), rank, world)
    if (rank < count) then
      call kedge_init(engine, world)
      if (saved_by > 0) call loads(engine, world, count, saved_by)
      call saves(engine, count)
      call kedge_finalize(engine)
      call kedge_free(engine)
      call MPI_Comm_free(world)
    end if
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine with_the_first

  integer function first_column(of_rank, count)
    integer, intent(in) :: of_rank, count

    first_column = 1 + columns * of_rank / count
  end function first_column

  elemental real(real64) function element(row, column)
    integer, intent(in) :: row, column

    element = row + 100 * column
  end function element

  elemental function word(column)
    integer, intent(in) :: column
    character(len=letters) :: word

    write (word, "(a, i3)") "w", column
  end function word

  subroutine saves(engine, count)
    type(kedge_engine), intent(in) :: engine
    integer, intent(in) :: count
    real(real64) :: field(rows, columns)
    logical :: mask(columns)
    character(len=letters) :: words(columns)
    integer :: i, j, first, last

    field = reshape([((element(i, j), i=1, rows), j=1, columns)], [rows, columns])
    mask = [(mod(j, 3) == 0, j=1, columns)]
    words = [(word(j), j=1, columns)]
    first = first_column(rank, count)
    last = first_column(rank + 1, count) - 1
    call kedge_create(engine, "a")
    call kedge_save(engine, "field", field(:, first:last), kedge_shard([rows, columns], [1, first]))
    call kedge_save(engine, "mask", mask(first:last), kedge_shard([columns], [first]))
    call kedge_save(engine, "words", words(first:last), kedge_shard([columns], [first]))
    call kedge_save(engine, "step", 7, kedge_replicated)
    call kedge_save(engine, "own", 100 + rank)
    if (rank == 0) call kedge_save(engine, "box", .true.)
    call kedge_commit(engine)
  end subroutine saves

  subroutine loads(engine, world, count, saved_by)
    type(kedge_engine), intent(in) :: engine
    type(MPI_Comm), intent(in) :: world
    integer, intent(in) :: count, saved_by
    type(kedge_info) :: info
    type(kedge_wants) :: nothing
    integer, allocatable :: dealt(:)
    integer :: code, sum, others, number
    logical :: found

    call kedge_logical_ranks(engine, dealt, stat=code)
    call check_code(code, KEDGE_BAD_STATE, "kedge_logical_ranks before kedge_open")
    call kedge_load_all(engine, nothing, stat=code)
    call check_code(code, KEDGE_BAD_STATE, "kedge_load_all before kedge_open")
    call kedge_open(engine, found)
    call kedge_get_info(engine, info)
    call check(found .and. info%world_size == saved_by, "another number of ranks saved it")
    call kedge_logical_ranks(engine, dealt)
    number = size(dealt)
    call MPI_Allreduce(number, others, 1, MPI_INTEGER, MPI_SUM, world)
    number = dot_product(dealt, dealt)
    call MPI_Allreduce(number, sum, 1, MPI_INTEGER, MPI_SUM, world)
    call check(others == saved_by .and. sum == dot_product([(code, code=0, saved_by - 1)], &
      [(code, code=0, saved_by - 1)]), "not each rank once in kedge_logical_ranks")
    call kedge_load_all(engine, nothing, stat=code)
    call check_code(code, KEDGE_OK, "kedge_load_all of nothing", kedge_last_error())
    call loads_all(engine, count, saved_by)
    call wants_wrongly(engine, count)
    call kedge_close(engine)

    call kedge_open(engine, found)
    number = 0
    call kedge_load(engine, "own", number, stat=code)
    call check_code(code, KEDGE_MISMATCH, "kedge_load of what other ranks saved")
    call kedge_close(engine, stat=code)
    call check_code(code, KEDGE_MISMATCH, "kedge_close after such a load")
  end subroutine loads

  ! With the columns beside this rank's, between rows and columns that belong to nobody.
  subroutine loads_all(engine, count, saved_by)
    type(kedge_engine), intent(in) :: engine
    integer, intent(in) :: count, saved_by
    type(kedge_wants) :: wants
    real(real64), target :: plate(0:rows + 1, 0:columns + 1)
    real(real64) :: expected(0:rows + 1, 0:columns + 1)
    logical, target :: mask(columns), box
    character(len=letters), target :: words(2, columns)
    integer, target :: step, own(4)
    integer :: code, first, last, i, j, turn

    first = max(1, first_column(rank, count) - 1)
    last = min(columns, first_column(rank + 1, count))
    expected = untouched
    expected(1:rows, first:last) = reshape([((element(i, j), i=1, rows), j=first, last)], [rows, last - first + 1])
    do turn = 1, 2  ! the same again is not another want
      call kedge_want(wants, "field", plate(1:rows, first:last), kedge_shard([rows, columns], [1, first]))
      call kedge_want(wants, "mask", mask(first:last), kedge_shard([columns], [first]))
      call kedge_want(wants, "words", words(2, first:last), kedge_shard([columns], [first]))
      call kedge_want(wants, "step", step, kedge_replicated)
      call kedge_want(wants, "own", own(2), of=saved_by - 1)
      call kedge_want(wants, "box", box)
      plate = untouched
      mask = .false.
      words = "...."
      box = .false.
      step = 0
      own = 0
      call kedge_load_all(engine, wants, stat=code)
      call check_code(code, KEDGE_OK, "kedge_load_all", kedge_last_error())
      call check(all(nint(plate) == nint(expected)), "the field is another one, or more was written")
      call check(all(mask .eqv. [(mod(j, 3) == 0 .and. j >= first .and. j <= last, j=1, columns)]), "the mask")
      call check(all(words(2, first:last) == [(word(j), j=first, last)]) .and. all(words(1, :) == "...."), "the words")
      call check(step == 7 .and. box .and. all(own == [0, 99 + saved_by, 0, 0]), "the numbers")
    end do
  end subroutine loads_all

  ! Only the last rank is wrong; all learn of it, and why.
  subroutine wants_wrongly(engine, count)
    type(kedge_engine), intent(in) :: engine
    integer, intent(in) :: count
    type(kedge_wants) :: wants
    real(real64), target :: field(rows, columns), other(rows + 1, columns)
    real(real64), allocatable, target :: nowhere(:, :)
    real(real64), pointer :: dangling
    integer, target :: step
    character(len=500) :: reason
    integer :: code, expected, try
    character(len=*), parameter :: why(9) = [character(len=40) :: "field: kedge_shard: global_shape has a", &
      "start(1) is 0; the first index is 1", "field: kedge_want: the array is not", &
      "field: kedge_want: the array is not", "own: kedge_want: `of` is negative", "own: only KEDGE_PLACEMENT_OWN", &
      "into the same memory", "reaches over the edge", "no such name"]

    nullify (dangling)
    do try = 1, 9
      wants = kedge_wants()
      expected = KEDGE_INVALID_ARGUMENT
      if (rank == count - 1) then
        select case (try)
        case (1)
          call kedge_want(wants, "field", field, kedge_shard([rows], [1]))
        case (2)
          call kedge_want(wants, "field", field, kedge_shard([rows, columns], [0, 1]))
        case (3)
          call kedge_want(wants, "field", nowhere, kedge_shard([rows, columns], [1, 1]))
        case (4)
          call kedge_want(wants, "field", dangling)
        case (5)
          call kedge_want(wants, "own", step, of=-1)
        case (6)
          call kedge_want(wants, "own", step, kedge_replicated, of=0)
        case (7)
          call kedge_want(wants, "field", field, kedge_shard([rows, columns], [1, 1]))
          call kedge_want(wants, "field", field(:, 1:2), kedge_shard([rows, columns], [1, 1]))
        case (8)
          call kedge_want(wants, "field", other, kedge_shard([rows, columns], [1, 1]))
        case (9)
          call kedge_want(wants, "no such name", step)
        end select
      end if
      if (try == 8) expected = KEDGE_MISMATCH
      if (try == 9) expected = KEDGE_NOT_FOUND
      reason = ""
      call kedge_load_all(engine, wants, stat=code, errmsg=reason)
      call check_code(code, expected, "kedge_load_all of a wrong want", reason)
      call expect_text(reason, trim(why(try)))
    end do
  end subroutine wants_wrongly
end program other_ranks
