! Every call, as it is meant to be made; counters and outputs too.
module right_calls
  use, intrinsic :: iso_c_binding, only: c_intptr_t
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use checks, only: check, check_code, expect_text
  use kedge
  use mpi_f08
  implicit none
  private
  public :: writes_a_checkpoint, reads_it, goes_back, routes_files, names_numbers

  integer, parameter :: rows = 3  ! each rank has two columns

contains

  subroutine names_numbers()
    call check(kedge_error_name(KEDGE_NO_SPACE) == "no_space", "the name of an error")
    call check(kedge_error_name(-1) == "unknown", "the name of no error")
    call check(kedge_level_name(KEDGE_LEVEL_PROTECTED) == "protected", "the name of a level")
    call check(kedge_source_name(KEDGE_SOURCE_IN_PLACE) == "in place", "the name of a source")
    call check(kedge_dtype_size(KEDGE_COMPLEX128) == 16, "the size of an element")
    call check(kedge_dtype_size(KEDGE_FLOAT8_E4M3FN) == 1, "the size of a small float")
    call check(kedge_dtype_size(KEDGE_FLOAT8_E5M2) == 1, "the size of another small float")
    call check(kedge_dtype_size(0) == 0, "the size of no element")
  end subroutine names_numbers

  subroutine give_attributes(attributes)
    type(kedge_attributes), intent(inout) :: attributes
    integer :: i
    character(len=4) :: key

    call kedge_set_attribute(attributes, "step", 11)
    call kedge_set_attribute(attributes, "step ", 12)  ! the same key: this value stands
    call kedge_set_attribute(attributes, "large", 5000000000_int64)
    call kedge_set_attribute(attributes, "time", 0.5_real32)
    call kedge_set_attribute(attributes, "precise", 0.1_real64)
    call kedge_set_attribute(attributes, "title", "a plate  ")
    call kedge_set_attribute(attributes, "sizes", [3, 4, 5])
    call kedge_set_attribute(attributes, "large sizes", [3_int64, 5000000000_int64])
    call kedge_set_attribute(attributes, "none", [integer ::])
    call kedge_set_attribute(attributes, "box", [0.5_real32, 1.5_real32])
    call kedge_set_attribute(attributes, "precise box", [0.1_real64, 0.2_real64])
    do i = 1, 9  ! more than fit in the first list
      write (key, "(a, i0)") "k", i
      call kedge_set_attribute(attributes, key, i)
    end do
  end subroutine give_attributes

  subroutine writes_a_checkpoint(engine, rank, ranks)
    type(kedge_engine), intent(in) :: engine
    type(kedge_counters) :: counters
    integer, intent(in) :: rank, ranks
    type(kedge_attributes) :: attributes
    character(len=5) :: words(2)
    character(len=20) :: untouched
    real(real64) :: block(rows, 2)
    logical :: needed
    integer :: code, level, i
    logical :: reached

    call kedge_need_checkpoint(engine, needed, stat=code)
    call check_code(code, KEDGE_OK, "kedge_need_checkpoint", kedge_last_error())
    needed = .true.
    call kedge_should_exit(engine, needed, stat=code)
    call check_code(code, KEDGE_OK, "kedge_should_exit", kedge_last_error())
    call check(.not. needed, "the job is to end though nobody said so")
    call give_attributes(attributes)
    untouched = "as it was"
    call kedge_create(engine, "step-1 ", attributes, stat=code, errmsg=untouched)  ! a trailing blank is not the tag's
    call check_code(code, KEDGE_OK, "kedge_create", kedge_last_error())
    call check(untouched == "as it was", "errmsg is set without a failure")
    block = reshape([(real(100 * rank + i, real64), i=1, 2 * rows)], [rows, 2])
    call kedge_save(engine, "field", block, kedge_shard([rows, 2 * ranks], [1, 2 * rank + 1]), stat=code)
    call check_code(code, KEDGE_OK, "kedge_save of a shard", kedge_last_error())
    call kedge_save(engine, "seed", 42_int64, kedge_replicated, stat=code)
    call check_code(code, KEDGE_OK, "kedge_save of what is replicated", kedge_last_error())
    words = ["abcde", "fghij"]
    call kedge_save(engine, "words", words)
    call kedge_save(engine, "middles", words(:)(2:3))  ! two letters, then a gap of three
    call kedge_save(engine, "lines", words, kedge_shard([2_int64 * ranks + 1], [2_int64 * rank + 1], &
      holes_allowed=.true.))
    call kedge_save(engine, "name", "kedge")
    call kedge_commit(engine, stat=code)
    call check_code(code, KEDGE_OK, "kedge_commit", kedge_last_error())

    call kedge_wait(engine, "step-1", KEDGE_LEVEL_PERSISTENT, stat=code)
    call check_code(code, KEDGE_OK, "kedge_wait for the prefix", kedge_last_error())
    call kedge_get_level(engine, "step-1", level)
    call check(level == KEDGE_LEVEL_PERSISTENT, "the level is not persistent")
    call kedge_get_level(engine, "no such tag", level)
    call check(level == KEDGE_LEVEL_NONE, "the level of no commit")
    call kedge_wait(engine, "step-1", KEDGE_LEVEL_LOCAL, stat=code)
    call check_code(code, KEDGE_OK, "kedge_wait", kedge_last_error())
    call kedge_wait_for(engine, "step-1", KEDGE_LEVEL_LOCAL, 1d0, reached, stat=code)
    call check_code(code, KEDGE_OK, "kedge_wait_for", kedge_last_error())
    call check(reached, "kedge_wait_for did not reach the level")
    call kedge_get_counters(engine, counters, stat=code)
    call check_code(code, KEDGE_OK, "kedge_get_counters", kedge_last_error())
    call check(counters%commits == 1 .and. counters%flushes == 1 .and. counters%pending == 0, "the counts")
    call check(counters%saved_bytes > 4096 .and. counters%flushed_bytes == counters%saved_bytes, "the counted bytes")
    call check(counters%blocked_s > 0 .and. counters%persistent_max_s > 0, "the counted seconds")
    call kedge_pause(engine, stat=code)
    call check_code(code, KEDGE_OK, "kedge_pause", kedge_last_error())
    call kedge_resume(engine, stat=code)
    call check_code(code, KEDGE_OK, "kedge_resume", kedge_last_error())
    call kedge_set_stream(engine, 0_c_intptr_t, stat=code)
    call check_code(code, KEDGE_OK, "kedge_set_stream", kedge_last_error())
    call kedge_unset_stream(engine, stat=code)
    call check_code(code, KEDGE_OK, "kedge_unset_stream", kedge_last_error())
    call kedge_create_output(engine, "plot-1", stat=code)
    call check_code(code, KEDGE_OK, "kedge_create_output", kedge_last_error())
    call kedge_commit(engine, stat=code)
    call check_code(code, KEDGE_OK, "kedge_commit of an output", kedge_last_error())
    call kedge_wait(engine, "plot-1", KEDGE_LEVEL_PERSISTENT, stat=code)
    call check_code(code, KEDGE_OK, "kedge_wait for an output", kedge_last_error())
    call kedge_pin(engine, "step-1", stat=code)
    call check_code(code, KEDGE_OK, "kedge_pin", kedge_last_error())
    call kedge_unpin(engine, "step-1", stat=code)
    call check_code(code, KEDGE_OK, "kedge_unpin", kedge_last_error())
  end subroutine writes_a_checkpoint

  subroutine reads_it(engine, rank, ranks)
    type(kedge_engine), intent(in) :: engine
    integer, intent(in) :: rank, ranks
    type(kedge_info) :: info
    real(real64) :: block(rows, 2)
    integer(int64) :: seed
    character(len=5) :: words(2), name
    character(len=6) :: letters(2)
    logical :: found
    integer :: code, i

    call kedge_open(engine, found, stat=code)
    call check_code(code, KEDGE_OK, "kedge_open", kedge_last_error())
    call check(found, "kedge_open finds nothing")
    call kedge_get_info(engine, info)
    call check(info%tag == "step-1" .and. info%world_size == ranks .and. info%logical_rank == rank, "info")
    call check(info%attribute_count == 19 .and. info%total_bytes > 0 .and. info%time_ns > 0, "numbers in info")
    call check(len_trim(info%commit_id) == 32 .and. verify(info%parent_commit_id, "0") == 0, "ids in info")
    call reads_attributes(engine)
    call lists_regions(engine, rank, ranks)

    block = 0
    seed = 0
    call kedge_load(engine, "field", block, stat=code)
    call check_code(code, KEDGE_OK, "kedge_load of a shard", kedge_last_error())
    call check(all(nint(pack(block, .true.)) == [(100 * rank + i, i=1, 2 * rows)]), "field")
    call kedge_load(engine, "seed", seed)
    call check(seed == 42, "seed")
    call kedge_load(engine, "words", words)
    call check(all(words == ["abcde", "fghij"]), "words")
    words = "....."
    call kedge_load(engine, "middles", words(:)(3:4), stat=code)
    call check_code(code, KEDGE_OK, "kedge_load into parts of strings", kedge_last_error())
    call check(all(words == ["..bc.", "..gh."]), "parts of strings: " // words(1) // words(2))
    call kedge_load(engine, "lines", words)
    call check(all(words == ["abcde", "fghij"]), "lines")
    call kedge_load(engine, "name", name)
    call check(name == "kedge", "name")
    call kedge_close(engine, stat=code)
    call check_code(code, KEDGE_OK, "kedge_close", kedge_last_error())

    call kedge_open(engine, found, tag="step-1")
    call kedge_load(engine, "words", letters, stat=code)  ! of another length
    call check_code(code, KEDGE_MISMATCH, "strings of another length")
    call kedge_close(engine, stat=code)
    call check_code(code, KEDGE_MISMATCH, "kedge_close after that")
  end subroutine reads_it

  subroutine reads_attributes(engine)
    type(kedge_engine), intent(in) :: engine
    integer(int32) :: step, ninth
    integer(int64) :: large
    real(real64) :: time, precise
    character(len=:), allocatable :: title
    integer(int64), allocatable :: sizes(:), none(:)
    real(real64), allocatable :: box(:)

    call kedge_get_attribute(engine, "step", step)
    call kedge_get_attribute(engine, "k9", ninth)
    call check(step == 12 .and. ninth == 9, "attributes of integer(int32)")
    call kedge_get_attribute(engine, "large", large)
    call check(large == 5000000000_int64, "attribute of integer(int64)")
    call kedge_get_attribute(engine, "time", time)
    call kedge_get_attribute(engine, "precise", precise)
    call check(nint(2 * time) == 1 .and. transfer(precise, 0_int64) == transfer(0.1_real64, 0_int64), "attributes of real")
    call kedge_get_attribute(engine, "title", title)
    call check(title == "a plate" .and. len(title) == 7, "attribute of character")
    call kedge_get_attribute(engine, "sizes", sizes)
    call check(size(sizes) == 3 .and. all(sizes == [3, 4, 5]), "attribute of three integers")
    call kedge_get_attribute(engine, "large sizes", sizes)
    call check(size(sizes) == 2 .and. all(sizes == [3_int64, 5000000000_int64]), "attribute of two integers")
    call kedge_get_attribute(engine, "none", none)
    call check(size(none) == 0, "attribute of no integer")
    call kedge_get_attribute(engine, "precise box", box)
    call check(size(box) == 2 .and. all(nint(10 * box) == [1, 2]), "attribute of two reals")
  end subroutine reads_attributes

  subroutine lists_regions(engine, rank, ranks)
    type(kedge_engine), intent(in) :: engine
    integer, intent(in) :: rank, ranks
    type(kedge_region) :: region
    character(len=200) :: reason
    integer :: count, i, seen, code

    call kedge_region_count(engine, count)
    call check(count == 6, "the number of regions")
    seen = 0
    do i = 1, count
      call kedge_get_region(engine, i, region)
      if (region%name == "field" .or. region%name == "name") seen = seen + 1
    end do
    call check(seen == 2, "regions by index")
    call kedge_get_region(engine, 0, region, stat=code, errmsg=reason)
    call check_code(code, KEDGE_NOT_FOUND, "region 0")
    call expect_text(reason, "there is no region 0; this rank has 6 regions, and the first is 1")
    call kedge_get_region(engine, count + 1, region, stat=code)
    call check_code(code, KEDGE_NOT_FOUND, "a region behind the last")

    call kedge_find_region(engine, "field", region)
    call check(region%dtype == KEDGE_FLOAT64 .and. region%placement == KEDGE_PLACEMENT_SHARD, "a shard's type")
    call check(region%dimensions == 2 .and. all(region%shape(:2) == [rows, 2]), "a shard's shape")
    call check(all(region%global_shape(:2) == [rows, 2 * ranks]), "a shard's whole shape")
    call check(all(region%start(:2) == [1, 2 * rank + 1]), "where a shard begins")
    call check(region%size_bytes == 6 * 8 .and. .not. region%routed, "a shard's size")
    call kedge_find_region(engine, "lines", region)
    call check(region%dtype == KEDGE_UINT8 .and. all(region%shape(:2) == [5, 2]), "strings: the length is the first")
    call check(all(region%global_shape(:2) == [5, 2 * ranks + 1]), "the whole shape of strings")
    call check(all(region%start(:2) == [1, 2 * rank + 1]), "where strings begin")
    call kedge_find_region(engine, "seed", region)
    call check(region%placement == KEDGE_PLACEMENT_REPLICATED .and. region%dimensions == 0, "a replicated scalar")
    call kedge_find_region(engine, "no such region", region, stat=code)
    call check_code(code, KEDGE_NOT_FOUND, "a region that is not there")
  end subroutine lists_regions

  ! By tag, by what is before a tag, from a prefix, and discarding what is newer.
  subroutine goes_back(engine, prefix)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: prefix
    type(kedge_info) :: info
    character(len=300) :: reason
    logical :: found
    integer :: code, step

    do step = 2, 3
      call kedge_create(engine, merge("step-2", "step-3", step == 2))
      call kedge_save(engine, "step", step)
      call kedge_commit(engine)
    end do
    call kedge_create(engine, "dropped")
    call kedge_abandon(engine, stat=code)
    call check_code(code, KEDGE_OK, "kedge_abandon", kedge_last_error())
    call kedge_open(engine, found, tag="dropped")
    call check(.not. found, "what was abandoned is there")

    call kedge_open_before(engine, found, "step-3", stat=code)
    call check_code(code, KEDGE_OK, "kedge_open_before", kedge_last_error())
    call kedge_get_info(engine, info)
    call check(found .and. info%tag == "step-2", "what is before step-3 is " // trim(info%tag))
    call kedge_close(engine)

    call kedge_open_source(engine, prefix, tag="step-3", stat=code, errmsg=reason)
    call check_code(code, KEDGE_OK, "kedge_open_source", reason)
    step = 0
    call kedge_load(engine, "step", step)
    call kedge_close(engine)
    call check(step == 3, "the step of a source")
    call kedge_open_source(engine, prefix, run="no such run", stat=code)
    call check_code(code, KEDGE_NOT_FOUND, "a source of another run")

    call kedge_open(engine, found, tag="step-2", newer=KEDGE_DISCARD_NEWER)
    call kedge_close(engine)
    call kedge_open(engine, found)
    call kedge_get_info(engine, info)
    call kedge_close(engine)
    call check(info%tag == "step-2", "discarded commits are offered again")
  end subroutine goes_back

  subroutine routes_files(engine, rank)
    type(kedge_engine), intent(in) :: engine
    integer, intent(in) :: rank
    character(len=:), allocatable :: path
    logical :: found
    integer :: code, unit, number

    call kedge_create(engine, "files")
    call kedge_route_out(engine, "restart.txt", path, max_bytes=1000_int64, stat=code)
    call check_code(code, KEDGE_OK, "kedge_route_out", kedge_last_error())
    call check(index(path, "/restart.txt") == len(path) - len("/restart.txt") + 1, "the path is " // path)
    open (newunit=unit, file=path, action="write", status="replace")
    write (unit, *) rank + 7
    close (unit)
    call kedge_commit(engine)

    call kedge_open(engine, found)
    call kedge_route_in(engine, "restart.txt", path, stat=code)
    call check_code(code, KEDGE_OK, "kedge_route_in", kedge_last_error())
    open (newunit=unit, file=path, action="read", status="old")
    read (unit, *) number
    close (unit)
    call check(number == rank + 7, "the routed file has another number")
    call kedge_close(engine)
    call kedge_create(engine, "bound")
    call kedge_route_out(engine, "restart.txt", path, max_bytes=-1_int64, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "a bound below zero")
    call kedge_commit(engine, stat=code)
    call check_code(code, KEDGE_INVALID_ARGUMENT, "kedge_commit after that")
  end subroutine routes_files
end module right_calls
