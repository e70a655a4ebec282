! Opening a checkpoint and closing it.
module kedge_m_opening
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_loc, c_null_ptr, c_ptr
  use kedge_m_c_api, only: c_close, c_open, c_open_before, c_open_source
  use kedge_m_constants, only: KEDGE_KEEP_NEWER, KEDGE_OK
  use kedge_m_engine, only: kedge_engine
  use kedge_m_failures, only: on_all_ranks, settle, to_c
  implicit none
  private
  public :: kedge_open, kedge_open_before, kedge_open_source, kedge_close

contains

  ! COLLECTIVE. Opens the newest commit of this tag that all ranks can recover; without a tag, or with "latest", the
  ! newest of all. `found` is false if the run has no commit yet or none of this tag; kedge_get_info describes the
  ! opened one. `newer` says how to treat newer commits: KEDGE_KEEP_NEWER (the default) or KEDGE_DISCARD_NEWER.
  ! KEDGE_UNRECOVERABLE if commits match but none can be recovered.
  subroutine kedge_open(engine, found, tag, newer, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    logical, intent(out) :: found
    character(len=*), intent(in), optional :: tag
    integer, intent(in), optional :: newer
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: wanted(:)
    integer(c_int) :: answer, code

    call to_letters(tag, wanted)
    answer = 0
    code = c_open(engine%handle, address_of(wanted), c_newer(newer), answer)
    found = code == KEDGE_OK .and. answer /= 0
    call settle(code, on_all_ranks, stat, errmsg)
  end subroutine kedge_open

  ! COLLECTIVE. Opens the newest commit that is older than every commit of this tag; as kedge_open.
  subroutine kedge_open_before(engine, found, tag, newer, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    logical, intent(out) :: found
    character(len=*), intent(in) :: tag
    integer, intent(in), optional :: newer
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: wanted(:)
    integer(c_int) :: answer, code

    call to_letters(tag, wanted)
    answer = 0
    code = c_open_before(engine%handle, address_of(wanted), c_newer(newer), answer)
    found = code == KEDGE_OK .and. answer /= 0
    call settle(code, on_all_ranks, stat, errmsg)
  end subroutine kedge_open_before

  ! COLLECTIVE. Opens another run's checkpoint, or a copied tag directory, in place as the origin of a new run. `prefix`
  ! is the directory of the tag directories; `run` the run whose tags to consider, any if it is absent or empty; `tag`
  ! as for kedge_open. KEDGE_NOT_FOUND if there is none; KEDGE_IO if its files are not trusted (persistent.trust).
  subroutine kedge_open_source(engine, prefix, run, tag, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: prefix
    character(len=*), intent(in), optional :: run, tag
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: of_run(:), wanted(:)
    integer(c_int) :: found, code

    call to_letters(run, of_run)
    call to_letters(tag, wanted)
    code = c_open_source(engine%handle, to_c(prefix), address_of(of_run), address_of(wanted), found)
    call settle(code, on_all_ranks, stat, errmsg)
  end subroutine kedge_open_source

  ! COLLECTIVE. Closes the checkpoint and reports the first failure since kedge_open: use the loaded data only if it
  ! succeeds. After KEDGE_CORRUPT, the next kedge_open rebuilds the checkpoint or opens an older one.
  subroutine kedge_close(engine, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_close(engine%handle), on_all_ranks, stat, errmsg)
  end subroutine kedge_close

  ! C's number for `newer`; C refuses unknown ones on all ranks.
  pure function c_newer(newer) result(number)
    integer, intent(in), optional :: newer
    integer(c_int) :: number

    number = int(KEDGE_KEEP_NEWER, c_int)
    if (present(newer)) number = int(newer, c_int)
  end function c_newer

  ! Converts a string that may be absent; `letters` is then not allocated.
  subroutine to_letters(text, letters)
    character(len=*), intent(in), optional :: text
    character(kind=c_char), allocatable, intent(out) :: letters(:)
    character(len=:), allocatable :: closed
    integer :: i

    if (.not. present(text)) return
    closed = to_c(text)
    letters = [(closed(i:i), i=1, len(closed))]
  end subroutine to_letters

  function address_of(letters) result(address)
    character(kind=c_char), allocatable, intent(in), target :: letters(:)
    type(c_ptr) :: address

    address = c_null_ptr
    if (allocated(letters)) address = c_loc(letters)
  end function address_of
end module kedge_m_opening
