! The calls of kedge.h and of the headers beside it as the other modules here make them; programs do not see this
! module. Written by share/kedge/fortran-interface: change the headers, and run it.
module kedge_m_c_api
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int32_t, c_int64_t, c_intptr_t, c_ptr, &
    c_size_t
  use kedge_m_c_types
  implicit none
  public
  interface
    function c_error_name(code) bind(c, name="kedge_error_name") result(outcome)
      import
      implicit none
      integer(c_int), value :: code
      type(c_ptr) :: outcome
    end function c_error_name
    function c_last_failure() bind(c, name="kedge_last_failure") result(outcome)
      import
      implicit none
      type(c_ptr) :: outcome
    end function c_last_failure
    function c_last_error() bind(c, name="kedge_last_error") result(outcome)
      import
      implicit none
      type(c_ptr) :: outcome
    end function c_last_error
    function c_options_load(options) bind(c, name="kedge_options_load") result(outcome)
      import
      implicit none
      type(c_ptr), intent(out) :: options
      integer(c_int) :: outcome
    end function c_options_load
    function c_options_set(options, name, value) bind(c, name="kedge_options_set") result(outcome)
      import
      implicit none
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: name(*), value(*)
      integer(c_int) :: outcome
    end function c_options_set
    function c_options_get(options, name, buffer, size, length) bind(c, name="kedge_options_get") result(outcome)
      import
      implicit none
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: name(*)
      character(kind=c_char), intent(out) :: buffer(*)
      integer(c_size_t), value :: size
      integer(c_size_t), intent(out) :: length
      integer(c_int) :: outcome
    end function c_options_get
    subroutine c_options_free(options) bind(c, name="kedge_options_free")
      import
      implicit none
      type(c_ptr), value :: options
    end subroutine c_options_free
    function c_finalize(engine) bind(c, name="kedge_finalize") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_finalize
    function c_finalize_for(engine, seconds, done) bind(c, name="kedge_finalize_for") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      real(c_double), value :: seconds
      integer(c_int), intent(out) :: done
      integer(c_int) :: outcome
    end function c_finalize_for
    subroutine c_engine_free(engine) bind(c, name="kedge_engine_free")
      import
      implicit none
      type(c_ptr), value :: engine
    end subroutine c_engine_free
    function c_need_checkpoint(engine, needed) bind(c, name="kedge_need_checkpoint") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_int), intent(out) :: needed
      integer(c_int) :: outcome
    end function c_need_checkpoint
    function c_should_exit(engine, ending) bind(c, name="kedge_should_exit") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_int), intent(out) :: ending
      integer(c_int) :: outcome
    end function c_should_exit
    function c_level_name(level) bind(c, name="kedge_level_name") result(outcome)
      import
      implicit none
      integer(c_int), value :: level
      type(c_ptr) :: outcome
    end function c_level_name
    function c_create(engine, tag, attributes, attribute_count) bind(c, name="kedge_create") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      type(c_attribute), intent(in) :: attributes(*)
      integer(c_size_t), value :: attribute_count
      integer(c_int) :: outcome
    end function c_create
    function c_create_output(engine, tag, attributes, attribute_count) bind(c, name="kedge_create_output") &
        result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      type(c_attribute), intent(in) :: attributes(*)
      integer(c_size_t), value :: attribute_count
      integer(c_int) :: outcome
    end function c_create_output
    function c_save(engine, name, data, dtype, dimensions, shape) bind(c, name="kedge_save") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine, data
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: dtype, dimensions
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int) :: outcome
    end function c_save
    function c_save_shard(engine, name, data, dtype, dimensions, shape, global_shape, offset, holes_allowed) &
        bind(c, name="kedge_save_shard") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine, data
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: dtype, dimensions, holes_allowed
      integer(c_int64_t), intent(in) :: shape(*), global_shape(*), offset(*)
      integer(c_int) :: outcome
    end function c_save_shard
    function c_save_replicated(engine, name, data, dtype, dimensions, shape) bind(c, name="kedge_save_replicated") &
        result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine, data
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: dtype, dimensions
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int) :: outcome
    end function c_save_replicated
    function c_route_out(engine, name, max_bytes, path, size, length) bind(c, name="kedge_route_out") &
        result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: max_bytes
      character(kind=c_char), intent(out) :: path(*)
      integer(c_size_t), value :: size
      integer(c_size_t), intent(out) :: length
      integer(c_int) :: outcome
    end function c_route_out
    function c_refuse(engine, name, reason) bind(c, name="kedge_refuse") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*), reason(*)
      integer(c_int) :: outcome
    end function c_refuse
    function c_commit(engine) bind(c, name="kedge_commit") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_commit
    function c_abandon(engine) bind(c, name="kedge_abandon") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_abandon
    function c_get_level(engine, tag, level) bind(c, name="kedge_get_level") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      integer(c_int), intent(out) :: level
      integer(c_int) :: outcome
    end function c_get_level
    function c_get_counters(engine, counters) bind(c, name="kedge_get_counters") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      type(c_counters), intent(out) :: counters
      integer(c_int) :: outcome
    end function c_get_counters
    function c_wait(engine, tag, level) bind(c, name="kedge_wait") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      integer(c_int), value :: level
      integer(c_int) :: outcome
    end function c_wait
    function c_wait_for(engine, tag, level, seconds, reached) bind(c, name="kedge_wait_for") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      integer(c_int), value :: level
      real(c_double), value :: seconds
      integer(c_int), intent(out) :: reached
      integer(c_int) :: outcome
    end function c_wait_for
    function c_pin(engine, tag) bind(c, name="kedge_pin") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      integer(c_int) :: outcome
    end function c_pin
    function c_unpin(engine, tag) bind(c, name="kedge_unpin") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      integer(c_int) :: outcome
    end function c_unpin
    function c_pause(engine) bind(c, name="kedge_pause") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_pause
    function c_resume(engine) bind(c, name="kedge_resume") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_resume
    function c_open(engine, tag, newer, found) bind(c, name="kedge_open") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine, tag
      integer(c_int), value :: newer
      integer(c_int), intent(out) :: found
      integer(c_int) :: outcome
    end function c_open
    function c_open_before(engine, tag, newer, found) bind(c, name="kedge_open_before") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine, tag
      integer(c_int), value :: newer
      integer(c_int), intent(out) :: found
      integer(c_int) :: outcome
    end function c_open_before
    function c_open_source(engine, prefix, run, tag, found) bind(c, name="kedge_open_source") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine, run, tag
      character(kind=c_char), intent(in) :: prefix(*)
      integer(c_int), intent(out) :: found
      integer(c_int) :: outcome
    end function c_open_source
    function c_dtype_size(dtype) bind(c, name="kedge_dtype_size") result(outcome)
      import
      implicit none
      integer(c_int), value :: dtype
      integer(c_size_t) :: outcome
    end function c_dtype_size
    function c_load(engine, name, data, dtype, dimensions, shape) bind(c, name="kedge_load") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine, data
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: dtype, dimensions
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int) :: outcome
    end function c_load
    function c_route_in(engine, name, path, size, length) bind(c, name="kedge_route_in") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*)
      character(kind=c_char), intent(out) :: path(*)
      integer(c_size_t), value :: size
      integer(c_size_t), intent(out) :: length
      integer(c_int) :: outcome
    end function c_route_in
    function c_close(engine) bind(c, name="kedge_close") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_close
    function c_source_name(source) bind(c, name="kedge_source_name") result(outcome)
      import
      implicit none
      integer(c_int), value :: source
      type(c_ptr) :: outcome
    end function c_source_name
    function c_get_info(engine, info) bind(c, name="kedge_get_info") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      type(c_info), intent(out) :: info
      integer(c_int) :: outcome
    end function c_get_info
    function c_get_attribute_int64(engine, key, values, capacity, count) bind(c, name="kedge_get_attribute_int64") &
        result(outcome)
      import
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
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: key(*)
      real(c_double), intent(inout) :: values(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: count
      integer(c_int) :: outcome
    end function c_get_attribute_double
    function c_get_attribute_string(engine, key, buffer, size, length) bind(c, name="kedge_get_attribute_string") &
        result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: key(*)
      character(kind=c_char), intent(out) :: buffer(*)
      integer(c_size_t), value :: size
      integer(c_size_t), intent(out) :: length
      integer(c_int) :: outcome
    end function c_get_attribute_string
    function c_region_count(engine, count) bind(c, name="kedge_region_count") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_size_t), intent(out) :: count
      integer(c_int) :: outcome
    end function c_region_count
    function c_get_region(engine, index, region) bind(c, name="kedge_get_region") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_size_t), value :: index
      type(c_region), intent(out) :: region
      integer(c_int) :: outcome
    end function c_get_region
    function c_find_region(engine, name, region) bind(c, name="kedge_find_region") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*)
      type(c_region), intent(out) :: region
      integer(c_int) :: outcome
    end function c_find_region
    function c_load_all(engine, wants, count) bind(c, name="kedge_load_all") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      type(c_want), intent(in) :: wants(*)
      integer(c_size_t), value :: count
      integer(c_int) :: outcome
    end function c_load_all
    function c_logical_ranks(engine, ranks, capacity, count) bind(c, name="kedge_logical_ranks") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_int32_t), intent(inout) :: ranks(*)
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: count
      integer(c_int) :: outcome
    end function c_logical_ranks
    function c_set_stream(engine, stream) bind(c, name="kedge_set_stream") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_intptr_t), value :: stream
      integer(c_int) :: outcome
    end function c_set_stream
    function c_unset_stream(engine) bind(c, name="kedge_unset_stream") result(outcome)
      import
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_unset_stream
  end interface
end module kedge_m_c_api
