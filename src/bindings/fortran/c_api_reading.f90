! What c_api.f90 has, of the calls that read checkpoints.
module kedge_m_c_reading
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_ptr, c_size_t
  use kedge_m_c_types
  implicit none
  public
  interface
    function c_open(engine, tag, newer, found) bind(c, name="kedge_open") result(outcome)
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine, tag
      integer(c_int), value :: newer
      integer(c_int), intent(out) :: found
      integer(c_int) :: outcome
    end function c_open

    function c_open_before(engine, tag, newer, found) bind(c, name="kedge_open_before") result(outcome)
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine, tag
      integer(c_int), value :: newer
      integer(c_int), intent(out) :: found
      integer(c_int) :: outcome
    end function c_open_before

    function c_open_source(engine, prefix, run, tag, found) bind(c, name="kedge_open_source") result(outcome)
      import :: c_char, c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: prefix(*)
      type(c_ptr), value :: run, tag
      integer(c_int), intent(out) :: found
      integer(c_int) :: outcome
    end function c_open_source

    function c_source_name(source) bind(c, name="kedge_source_name") result(outcome)
      import :: c_int, c_ptr
      implicit none
      integer(c_int), value :: source
      type(c_ptr) :: outcome
    end function c_source_name

    function c_get_info(engine, info) bind(c, name="kedge_get_info") result(outcome)
      import :: c_info, c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      type(c_info), intent(out) :: info
      integer(c_int) :: outcome
    end function c_get_info

    function c_get_attribute_int64(engine, key, values, capacity, count) bind(c, &
        name="kedge_get_attribute_int64") result(outcome)
      import :: c_char, c_int, c_int64_t, c_ptr, c_size_t
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: key(*)
      integer(c_int64_t), intent(inout) :: values(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: count
      integer(c_int) :: outcome
    end function c_get_attribute_int64

    function c_get_attribute_double(engine, key, values, capacity, count) bind(c, &
        name="kedge_get_attribute_double") result(outcome)
      import :: c_char, c_double, c_int, c_ptr, c_size_t
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: key(*)
      real(c_double), intent(inout) :: values(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: count
      integer(c_int) :: outcome
    end function c_get_attribute_double

    function c_get_attribute_string(engine, key, buffer, size, length) bind(c, &
        name="kedge_get_attribute_string") result(outcome)
      import :: c_char, c_int, c_ptr, c_size_t
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: key(*)
      character(kind=c_char), intent(out) :: buffer(*)
      integer(c_size_t), value :: size
      integer(c_size_t), intent(out) :: length
      integer(c_int) :: outcome
    end function c_get_attribute_string

    function c_region_count(engine, count) bind(c, name="kedge_region_count") result(outcome)
      import :: c_int, c_ptr, c_size_t
      implicit none
      type(c_ptr), value :: engine
      integer(c_size_t), intent(out) :: count
      integer(c_int) :: outcome
    end function c_region_count

    function c_get_region(engine, index, region) bind(c, name="kedge_get_region") result(outcome)
      import :: c_int, c_ptr, c_region, c_size_t
      implicit none
      type(c_ptr), value :: engine
      integer(c_size_t), value :: index
      type(c_region), intent(out) :: region
      integer(c_int) :: outcome
    end function c_get_region

    function c_find_region(engine, name, region) bind(c, name="kedge_find_region") result(outcome)
      import :: c_char, c_int, c_ptr, c_region
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*)
      type(c_region), intent(out) :: region
      integer(c_int) :: outcome
    end function c_find_region

    function c_dtype_size(dtype) bind(c, name="kedge_dtype_size") result(outcome)
      import :: c_int, c_size_t
      implicit none
      integer(c_int), value :: dtype
      integer(c_size_t) :: outcome
    end function c_dtype_size

    function c_load(engine, name, data, dtype, dimensions, extents) bind(c, name="kedge_load") result(outcome)
      import :: c_char, c_int, c_int64_t, c_ptr
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: data
      integer(c_int), value :: dtype, dimensions
      integer(c_int64_t), intent(in) :: extents(*)
      integer(c_int) :: outcome
    end function c_load

    function c_route_in(engine, name, path, size, length) bind(c, name="kedge_route_in") result(outcome)
      import :: c_char, c_int, c_ptr, c_size_t
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*)
      character(kind=c_char), intent(out) :: path(*)
      integer(c_size_t), value :: size
      integer(c_size_t), intent(out) :: length
      integer(c_int) :: outcome
    end function c_route_in

    function c_close(engine) bind(c, name="kedge_close") result(outcome)
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_close
  end interface
end module kedge_m_c_reading
