! Attributes that a program gives a checkpoint.
module kedge_m_attributes
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_loc, c_null_char, c_null_ptr, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use kedge_m_c_api, only: c_attribute
  use kedge_m_constants, only: KEDGE_ATTRIBUTE_DOUBLE, KEDGE_ATTRIBUTE_INT64, KEDGE_ATTRIBUTE_STRING
  implicit none
  private
  public :: kedge_set_attribute, attributes_for_c

  ! An attribute; two of the three values are empty.
  type :: attribute
    integer :: type = 0
    character(kind=c_char), allocatable :: key(:)  ! ends with a NUL, like `letters`
    integer(int64), allocatable :: integers(:)
    real(real64), allocatable :: reals(:)
    character(kind=c_char), allocatable :: letters(:)
  end type attribute

  ! Small facts for kedge_create, e.g. the step's number. Its components are private to Kedge.
  type, public :: kedge_attributes
    integer :: count = 0
    type(attribute), allocatable :: items(:)
  end type kedge_attributes

  ! Local. Sets an attribute, or replaces the one with this key: a number, an array of numbers, or a string without its
  ! trailing blanks. kedge_create reports invalid keys and values.
  interface kedge_set_attribute
    module procedure set_int32, set_int64, set_real32, set_real64, set_string
    module procedure set_int32_array, set_int64_array, set_real32_array, set_real64_array
  end interface kedge_set_attribute

contains

  subroutine set_int32(attributes, key, value)
    type(kedge_attributes), intent(inout) :: attributes
    character(len=*), intent(in) :: key
    integer(int32), intent(in) :: value

    call set_int64_array(attributes, key, [int(value, int64)])
  end subroutine set_int32

  subroutine set_int64(attributes, key, value)
    type(kedge_attributes), intent(inout) :: attributes
    character(len=*), intent(in) :: key
    integer(int64), intent(in) :: value

    call set_int64_array(attributes, key, [value])
  end subroutine set_int64

  subroutine set_int32_array(attributes, key, value)
    type(kedge_attributes), intent(inout) :: attributes
    character(len=*), intent(in) :: key
    integer(int32), intent(in) :: value(:)

    call set_int64_array(attributes, key, int(value, int64))
  end subroutine set_int32_array

  subroutine set_int64_array(attributes, key, value)
    type(kedge_attributes), intent(inout) :: attributes
    character(len=*), intent(in) :: key
    integer(int64), intent(in) :: value(:)
    integer :: place

    call make_place(attributes, key, KEDGE_ATTRIBUTE_INT64, place)
    attributes%items(place)%integers = value
  end subroutine set_int64_array

  subroutine set_real32(attributes, key, value)
    type(kedge_attributes), intent(inout) :: attributes
    character(len=*), intent(in) :: key
    real(real32), intent(in) :: value

    call set_real64_array(attributes, key, [real(value, real64)])
  end subroutine set_real32

  subroutine set_real64(attributes, key, value)
    type(kedge_attributes), intent(inout) :: attributes
    character(len=*), intent(in) :: key
    real(real64), intent(in) :: value

    call set_real64_array(attributes, key, [value])
  end subroutine set_real64

  subroutine set_real32_array(attributes, key, value)
    type(kedge_attributes), intent(inout) :: attributes
    character(len=*), intent(in) :: key
    real(real32), intent(in) :: value(:)

    call set_real64_array(attributes, key, real(value, real64))
  end subroutine set_real32_array

  subroutine set_real64_array(attributes, key, value)
    type(kedge_attributes), intent(inout) :: attributes
    character(len=*), intent(in) :: key
    real(real64), intent(in) :: value(:)
    integer :: place

    call make_place(attributes, key, KEDGE_ATTRIBUTE_DOUBLE, place)
    attributes%items(place)%reals = value
  end subroutine set_real64_array

  subroutine set_string(attributes, key, value)
    type(kedge_attributes), intent(inout) :: attributes
    character(len=*), intent(in) :: key, value
    integer :: place

    call make_place(attributes, key, KEDGE_ATTRIBUTE_STRING, place)
    attributes%items(place)%letters = letters_of(value)
  end subroutine set_string

  ! Returns the attribute with this key, emptied, or a new one at the end.
  subroutine make_place(attributes, key, type, place)
    type(kedge_attributes), intent(inout) :: attributes
    character(len=*), intent(in) :: key
    integer, intent(in) :: type
    integer, intent(out) :: place
    type(attribute), allocatable :: more(:)
    character(kind=c_char), allocatable :: letters(:)

    allocate (letters, source=letters_of(key))
    if (.not. allocated(attributes%items)) allocate (attributes%items(8))
    do place = 1, attributes%count
      if (size(attributes%items(place)%key) /= size(letters)) cycle
      if (all(attributes%items(place)%key == letters)) exit
    end do
    if (place > size(attributes%items)) then
      allocate (more(2 * size(attributes%items)))
      more(:attributes%count) = attributes%items(:attributes%count)
      call move_alloc(more, attributes%items)
    end if
    attributes%count = max(attributes%count, place)
    attributes%items(place) = attribute(type=type, key=letters)
  end subroutine make_place

  pure function letters_of(text) result(letters)
    character(len=*), intent(in) :: text
    character(kind=c_char), allocatable :: letters(:)
    integer :: i

    allocate (letters(len_trim(text) + 1))
    do i = 1, len_trim(text)
      letters(i) = text(i:i)
    end do
    letters(size(letters)) = c_null_char
  end function letters_of

  ! Converts attributes to C's form, which points into `attributes`.
  function attributes_for_c(attributes) result(given)
    type(kedge_attributes), intent(in), target :: attributes
    type(c_attribute), allocatable :: given(:)
    integer :: i

    allocate (given(attributes%count))
    do i = 1, attributes%count
      associate (item => attributes%items(i))
        given(i)%key = c_loc(attributes%items(i)%key)
        given(i)%type = int(item%type, c_int)
        given(i)%count = 1
        given(i)%value = c_null_ptr
        select case (item%type)
        case (KEDGE_ATTRIBUTE_INT64)
          given(i)%count = size(item%integers, kind=c_size_t)
          if (given(i)%count > 0) given(i)%value = c_loc(attributes%items(i)%integers)
        case (KEDGE_ATTRIBUTE_DOUBLE)
          given(i)%count = size(item%reals, kind=c_size_t)
          if (given(i)%count > 0) given(i)%value = c_loc(attributes%items(i)%reals)
        case default
          given(i)%value = c_loc(attributes%items(i)%letters)
        end select
      end associate
    end do
  end function attributes_for_c
end module kedge_m_attributes
