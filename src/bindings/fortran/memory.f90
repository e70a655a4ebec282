! Shared parts of saving and loading all types and ranks: dimensions in C's order, and placements.
module kedge_m_memory
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64
  use kedge_m_c_api, only: c_load, c_refuse, c_save, c_save_replicated, c_save_shard
  use kedge_m_constants, only: KEDGE_PLACEMENT_REPLICATED, KEDGE_PLACEMENT_SHARD
  use kedge_m_engine, only: kedge_engine
  use kedge_m_failures, only: reported_later, settle, to_c
  use kedge_m_placement, only: kedge_placement
  implicit none
  private
  public :: save_memory, load_memory, refuse_save
  public :: global_shape_in_c, offset_in_c, problem_of, reversed

contains

  ! Saves contiguous elements. `extents` are in Fortran's order; the first `inner` ones (the length of strings) do not
  ! belong to the program's array, and placements omit them.
  subroutine save_memory(engine, name, memory, dtype, extents, inner, placement, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: memory
    integer, intent(in) :: dtype
    integer(int64), intent(in) :: extents(:)
    integer, intent(in) :: inner
    type(kedge_placement), intent(in), optional :: placement
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(kedge_placement) :: where_to
    integer(c_int64_t) :: c_extents(size(extents))
    integer(c_int) :: code, dimensions

    if (present(placement)) where_to = placement
    if (problem_of(where_to, size(extents) - inner) /= "") then
      call refuse_save(engine, name, trim(problem_of(where_to, size(extents) - inner)), stat, errmsg)
      return
    end if

    dimensions = size(extents, kind=c_int)
    c_extents = reversed(extents)
    select case (where_to%kind)
    case (KEDGE_PLACEMENT_SHARD)
      code = c_save_shard(engine%handle, to_c(name), memory, int(dtype, c_int), dimensions, c_extents, &
        global_shape_in_c(where_to, extents(:inner)), offset_in_c(where_to, extents(:inner)), &
        merge(1_c_int, 0_c_int, where_to%holes_allowed))
    case (KEDGE_PLACEMENT_REPLICATED)
      code = c_save_replicated(engine%handle, to_c(name), memory, int(dtype, c_int), dimensions, c_extents)
    case default
      code = c_save(engine%handle, to_c(name), memory, int(dtype, c_int), dimensions, c_extents)
    end select
    call settle(code, reported_later, stat, errmsg)
  end subroutine save_memory

  ! Loads memory; the caller passes `code` to settle.
  subroutine load_memory(engine, name, memory, dtype, extents, code)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: memory
    integer, intent(in) :: dtype
    integer(int64), intent(in) :: extents(:)
    integer(c_int), intent(out) :: code

    code = c_load(engine%handle, to_c(name), memory, int(dtype, c_int), size(extents, kind=c_int), &
      reversed(extents))
  end subroutine load_memory

  ! A save that cannot be passed to C: kedge_commit fails on all ranks with this text.
  subroutine refuse_save(engine, name, text, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: name, text
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_refuse(engine%handle, to_c(name), to_c(text)), reported_later, stat, errmsg)
  end subroutine refuse_save

  ! Why an array of this rank cannot have this placement; blank if it can.
  pure function problem_of(placement, rank) result(problem)
    type(kedge_placement), intent(in) :: placement
    integer, intent(in) :: rank
    character(len=len(placement%problem)) :: problem

    problem = placement%problem
    if (placement%kind == KEDGE_PLACEMENT_SHARD .and. problem == "" .and. placement%dimensions /= rank) then
      problem = "kedge_shard: global_shape has a different rank than the data"
    end if
  end function problem_of

  ! Of a shard's whole array; `inner` are the extents of an element, of a string its length.
  pure function global_shape_in_c(placement, inner) result(extents)
    type(kedge_placement), intent(in) :: placement
    integer(int64), intent(in) :: inner(:)
    integer(c_int64_t) :: extents(size(inner) + placement%dimensions)

    extents = reversed([inner, placement%global_shape(:placement%dimensions)])
  end function global_shape_in_c

  ! Of a shard's first element in the whole array, from 0.
  pure function offset_in_c(placement, inner) result(offset)
    type(kedge_placement), intent(in) :: placement
    integer(int64), intent(in) :: inner(:)
    integer(c_int64_t) :: offset(size(inner) + placement%dimensions)

    offset = reversed([0 * inner, placement%start(:placement%dimensions) - 1])
  end function offset_in_c

  pure function reversed(numbers) result(others)
    integer(int64), intent(in) :: numbers(:)
    integer(c_int64_t) :: others(size(numbers))

    others = numbers(size(numbers):1:-1)
  end function reversed
end module kedge_m_memory
