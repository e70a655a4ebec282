! The placement of a region among those of the other ranks.
module kedge_m_placement
  use, intrinsic :: iso_fortran_env, only: int32, int64
  use kedge_m_constants, only: KEDGE_MAX_DIMENSIONS, KEDGE_PLACEMENT_OWN, KEDGE_PLACEMENT_REPLICATED, &
    KEDGE_PLACEMENT_SHARD
  implicit none
  private
  public :: kedge_shard

  ! Made by kedge_shard, or kedge_replicated. Its components are private to Kedge.
  type, public :: kedge_placement
    integer :: kind = KEDGE_PLACEMENT_OWN
    integer :: dimensions = 0
    logical :: holes_allowed = .false.
    character(len=80) :: problem = ""
    integer(int64) :: global_shape(KEDGE_MAX_DIMENSIONS) = 0
    integer(int64) :: start(KEDGE_MAX_DIMENSIONS) = 1
  end type kedge_placement

  ! A region that every rank saves with the same bytes.
  type(kedge_placement), parameter, public :: kedge_replicated = kedge_placement(kind=KEDGE_PLACEMENT_REPLICATED)

  ! A region that is a block of a global array, given the whole array's extents and the index of the block's first
  ! element, from 1. The blocks of all ranks must cover the array exactly once, unless `holes_allowed`: then elements
  ! may be saved by no rank.
  interface kedge_shard
    module procedure shard_int32, shard_int64, shard_int32_int64, shard_int64_int32
  end interface kedge_shard

contains

  pure function shard_int32(global_shape, start, holes_allowed) result(placement)
    integer(int32), intent(in) :: global_shape(:), start(:)
    logical, intent(in), optional :: holes_allowed
    type(kedge_placement) :: placement

    placement = shard_int64(int(global_shape, int64), int(start, int64), holes_allowed)
  end function shard_int32

  pure function shard_int32_int64(global_shape, start, holes_allowed) result(placement)
    integer(int32), intent(in) :: global_shape(:)
    integer(int64), intent(in) :: start(:)
    logical, intent(in), optional :: holes_allowed
    type(kedge_placement) :: placement

    placement = shard_int64(int(global_shape, int64), start, holes_allowed)
  end function shard_int32_int64

  pure function shard_int64_int32(global_shape, start, holes_allowed) result(placement)
    integer(int64), intent(in) :: global_shape(:)
    integer(int32), intent(in) :: start(:)
    logical, intent(in), optional :: holes_allowed
    type(kedge_placement) :: placement

    placement = shard_int64(global_shape, int(start, int64), holes_allowed)
  end function shard_int64_int32

  pure function shard_int64(global_shape, start, holes_allowed) result(placement)
    integer(int64), intent(in) :: global_shape(:), start(:)
    logical, intent(in), optional :: holes_allowed
    type(kedge_placement) :: placement
    integer :: i

    placement%kind = KEDGE_PLACEMENT_SHARD
    if (present(holes_allowed)) placement%holes_allowed = holes_allowed
    placement%dimensions = size(global_shape)
    if (size(global_shape) /= size(start)) then
      placement%problem = "kedge_shard: global_shape and start differ in size"
    else if (size(global_shape) >= KEDGE_MAX_DIMENSIONS) then
      placement%problem = "kedge_shard: an array has at most 7 dimensions"
    else if (any(global_shape < 0)) then
      placement%problem = "kedge_shard: an extent of global_shape is negative"
    else if (any(start < 1)) then
      i = findloc(start < 1, .true., dim=1)
      write (placement%problem, "(a,i0,a,i0,a)") "kedge_shard: start(", i, ") is ", start(i), "; the first index is 1"
    else
      placement%global_shape(:size(start)) = global_shape
      placement%start(:size(start)) = start
    end if
  end function shard_int64
end module kedge_m_placement
