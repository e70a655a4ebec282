! What a program asks kedge_load_all for.
module kedge_m_wants
  use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_int64_t, c_intptr_t, c_loc, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64
  use kedge_m_constants, only: KEDGE_BOOL, KEDGE_PLACEMENT_OWN, KEDGE_PLACEMENT_SHARD
  use kedge_m_failures, only: to_c
  use kedge_m_memory, only: global_shape_in_c, offset_in_c, problem_of, reversed
  use kedge_m_placement, only: kedge_placement
  implicit none
  private
  public :: add_want, letters, text_address

  ! Elements of the program, which may have gaps between them.
  type, public :: program_memory
    integer(c_intptr_t) :: address = 0   ! of the first one; 0 if there are none
    integer(int64) :: element_bytes = 0  ! of a string its length
    logical :: is_logical = .false.
    integer(int64), allocatable :: extents(:)    ! in Fortran's order
    integer(c_intptr_t), allocatable :: steps(:)  ! bytes from an element to the next of each dimension
  end type program_memory

  type, public :: want
    character(kind=c_char), allocatable :: name(:), refused(:)  ! with a NUL
    integer :: dtype = 0, placement = KEDGE_PLACEMENT_OWN
    integer(c_int64_t), allocatable :: shape(:), global_shape(:), offset(:)  ! in C's order
    integer(c_int32_t), allocatable :: of
    type(program_memory) :: memory
  end type want

  ! What kedge_want collected for kedge_load_all. Its components are private to Kedge. A new one, and
  ! `wants = kedge_wants()`, is empty.
  type, public :: kedge_wants
    type(want), allocatable :: all(:)
  end type kedge_wants

contains

  ! `corners` are the addresses of the first element and of its neighbour in each dimension; no_memory says that the
  ! program's pointer has no target. The first `inner` (0 or 1) extents in C are those of an element.
  subroutine add_want(wants, name, corners, no_memory, extents, element_bytes, dtype, inner, placement, of)
    type(kedge_wants), intent(inout) :: wants
    character(len=*), intent(in) :: name
    type(c_ptr), intent(in) :: corners(0:)
    logical, intent(in) :: no_memory
    integer(int64), intent(in) :: extents(:), element_bytes
    integer, intent(in) :: dtype, inner
    type(kedge_placement), intent(in), optional :: placement
    integer, intent(in), optional :: of
    type(want), allocatable :: grown(:)
    type(want) :: new
    type(kedge_placement) :: where_from
    character(len=:), allocatable :: problem
    integer(int64) :: element(inner)
    integer :: i, count

    if (present(placement)) where_from = placement
    element = element_bytes
    problem = trim(problem_of(where_from, size(extents)))
    if (no_memory) problem = "kedge_want: the array is not allocated, or the pointer has no target"
    if (present(of)) then
      if (of < 0) problem = "kedge_want: `of` is negative; the first rank is 0"
      new%of = int(of, c_int32_t)
    end if
    new%name = letters(name)
    if (problem /= "") new%refused = letters(problem)
    new%dtype = dtype
    new%placement = where_from%kind
    new%shape = reversed([element, extents])
    if (where_from%kind == KEDGE_PLACEMENT_SHARD) then
      new%global_shape = global_shape_in_c(where_from, element)
      new%offset = offset_in_c(where_from, element)
    end if
    new%memory%address = address(corners(0))
    new%memory%element_bytes = element_bytes
    new%memory%is_logical = dtype == KEDGE_BOOL
    new%memory%extents = extents
    new%memory%steps = [(address(corners(i)) - address(corners(0)), i=1, size(extents))]

    count = 0
    if (allocated(wants%all)) count = size(wants%all)
    do i = 1, count
      if (same(new, wants%all(i))) return
    end do
    allocate (grown(count + 1))
    if (count > 0) grown(:count) = wants%all
    grown(count + 1) = new
    call move_alloc(grown, wants%all)
  end subroutine add_want

  ! Of a string, as C sees it.
  function text_address(text) result(place)
    character(kind=c_char), intent(in), target :: text(*)
    type(c_ptr) :: place

    place = c_loc(text)
  end function text_address

  pure function same(a, b)
    type(want), intent(in) :: a, b
    logical :: same

    same = a%memory%address == b%memory%address .and. a%dtype == b%dtype .and. a%placement == b%placement .and. &
      size(a%name) == size(b%name) .and. size(a%shape) == size(b%shape) .and. &
      (allocated(a%of) .eqv. allocated(b%of)) .and. .not. (allocated(a%refused) .or. allocated(b%refused))
    if (same) same = all(a%name == b%name) .and. all(a%shape == b%shape) .and. all(a%memory%steps == b%memory%steps)
    if (same .and. allocated(a%of)) same = a%of == b%of
    if (same .and. allocated(a%offset)) same = all(a%global_shape == b%global_shape) .and. all(a%offset == b%offset)
  end function same

  pure function letters(text) result(closed)
    character(len=*), intent(in) :: text
    character(kind=c_char), allocatable :: closed(:)
    character(len=:), allocatable :: whole
    integer :: i

    whole = to_c(text)
    allocate (closed(len(whole)))
    do i = 1, len(whole)
      closed(i) = whole(i:i)
    end do
  end function letters

  pure function address(place) result(number)
    type(c_ptr), intent(in) :: place
    integer(c_intptr_t) :: number

    number = transfer(place, number)
  end function address
end module kedge_m_wants
