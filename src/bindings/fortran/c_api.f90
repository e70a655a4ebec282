! kedge.h and kedge_mpi.h as the other modules here call them; programs do not see this module.
module kedge_m_c_api
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_ptr, c_size_t
  use kedge_m_c_reading
  use kedge_m_c_types
  implicit none
  public
  interface
    function c_error_name(code) bind(c, name="kedge_error_name") result(outcome)
      import :: c_int, c_ptr
      implicit none
      integer(c_int), value :: code
      type(c_ptr) :: outcome
    end function c_error_name
    function c_last_failure() bind(c, name="kedge_last_failure") result(outcome)
      import :: c_ptr
      implicit none
      type(c_ptr) :: outcome
    end function c_last_failure
    function c_last_error() bind(c, name="kedge_last_error") result(outcome)
      import :: c_ptr
      implicit none
      type(c_ptr) :: outcome
    end function c_last_error
    function c_options_load(options) bind(c, name="kedge_options_load") result(outcome)
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), intent(out) :: options
      integer(c_int) :: outcome
    end function c_options_load

    function c_options_set(options, name, value) bind(c, name="kedge_options_set") result(outcome)
      import :: c_char, c_int, c_ptr
      implicit none
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: name(*), value(*)
      integer(c_int) :: outcome
    end function c_options_set

    function c_options_get(options, name, buffer, size, length) bind(c, name="kedge_options_get") result(outcome)
      import :: c_char, c_int, c_ptr, c_size_t
      implicit none
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: name(*)
      character(kind=c_char), intent(out) :: buffer(*)
      integer(c_size_t), value :: size
      integer(c_size_t), intent(out) :: length
      integer(c_int) :: outcome
    end function c_options_get

    ! mpi.cpp
    function c_engine_new_f(comm, options, engine) bind(c, name="kedge_fortran_engine_new") result(outcome)
      import :: c_int, c_ptr
      implicit none
      integer(c_int), value :: comm
      type(c_ptr), value :: options, engine
      integer(c_int) :: outcome
    end function c_engine_new_f

    function c_finalize(engine) bind(c, name="kedge_finalize") result(outcome)
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_finalize

    function c_finalize_for(engine, seconds, done) bind(c, name="kedge_finalize_for") result(outcome)
      import :: c_double, c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      real(c_double), value :: seconds
      integer(c_int) :: done, outcome
    end function c_finalize_for

    function c_need_checkpoint(engine, needed) bind(c, name="kedge_need_checkpoint") result(outcome)
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      integer(c_int), intent(out) :: needed
      integer(c_int) :: outcome
    end function c_need_checkpoint

    function c_should_exit(engine, ending) bind(c, name="kedge_should_exit") result(outcome)
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      integer(c_int), intent(out) :: ending
      integer(c_int) :: outcome
    end function c_should_exit

    function c_level_name(level) bind(c, name="kedge_level_name") result(outcome)
      import :: c_int, c_ptr
      implicit none
      integer(c_int), value :: level
      type(c_ptr) :: outcome
    end function c_level_name

    function c_create(engine, tag, attributes, attribute_count) bind(c, name="kedge_create") result(outcome)
      import :: c_attribute, c_char, c_int, c_ptr, c_size_t
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      type(c_attribute), intent(in) :: attributes(*)
      integer(c_size_t), value :: attribute_count
      integer(c_int) :: outcome
    end function c_create

    function c_save(engine, name, data, dtype, dimensions, extents) bind(c, name="kedge_save") result(outcome)
      import :: c_char, c_int, c_int64_t, c_ptr
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: data
      integer(c_int), value :: dtype, dimensions
      integer(c_int64_t), intent(in) :: extents(*)
      integer(c_int) :: outcome
    end function c_save

    function c_save_shard(engine, name, data, dtype, dimensions, extents, global_shape, offset, &
        holes_allowed) bind(c, name="kedge_save_shard") result(outcome)
      import :: c_char, c_int, c_int64_t, c_ptr
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: data
      integer(c_int), value :: dtype, dimensions
      integer(c_int64_t), intent(in) :: extents(*), global_shape(*), offset(*)
      integer(c_int), value :: holes_allowed
      integer(c_int) :: outcome
    end function c_save_shard

    function c_save_replicated(engine, name, data, dtype, dimensions, extents) bind(c, &
        name="kedge_save_replicated") result(outcome)
      import :: c_char, c_int, c_int64_t, c_ptr
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: data
      integer(c_int), value :: dtype, dimensions
      integer(c_int64_t), intent(in) :: extents(*)
      integer(c_int) :: outcome
    end function c_save_replicated

    function c_refuse(engine, name, reason) bind(c, name="kedge_refuse") result(outcome)
      import :: c_char, c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*), reason(*)
      integer(c_int) :: outcome
    end function c_refuse

    function c_route_out(engine, name, max_bytes, path, size, length) bind(c, name="kedge_route_out") result(outcome)
      import :: c_char, c_int, c_int64_t, c_ptr, c_size_t
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: max_bytes
      character(kind=c_char), intent(out) :: path(*)
      integer(c_size_t), value :: size
      integer(c_size_t), intent(out) :: length
      integer(c_int) :: outcome
    end function c_route_out

    function c_commit(engine) bind(c, name="kedge_commit") result(outcome)
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_commit

    function c_abandon(engine) bind(c, name="kedge_abandon") result(outcome)
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_abandon

    function c_get_level(engine, tag, level) bind(c, name="kedge_get_level") result(outcome)
      import :: c_char, c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      integer(c_int), intent(out) :: level
      integer(c_int) :: outcome
    end function c_get_level

    function c_wait(engine, tag, level) bind(c, name="kedge_wait") result(outcome)
      import :: c_char, c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      integer(c_int), value :: level
      integer(c_int) :: outcome
    end function c_wait

    function c_wait_for(engine, tag, level, seconds, reached) bind(c, name="kedge_wait_for") result(outcome)
      import :: c_char, c_double, c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      integer(c_int), value :: level
      real(c_double), value :: seconds
      integer(c_int), intent(out) :: reached
      integer(c_int) :: outcome
    end function c_wait_for

    function c_get_counters(engine, counters) bind(c, name="kedge_get_counters") result(outcome)
      import :: c_counters, c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      type(c_counters), intent(out) :: counters
      integer(c_int) :: outcome
    end function c_get_counters

    function c_pause(engine) bind(c, name="kedge_pause") result(outcome)
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_pause

    function c_resume(engine) bind(c, name="kedge_resume") result(outcome)
      import :: c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      integer(c_int) :: outcome
    end function c_resume

    function c_pin(engine, tag) bind(c, name="kedge_pin") result(outcome)
      import :: c_char, c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      integer(c_int) :: outcome
    end function c_pin

    function c_unpin(engine, tag) bind(c, name="kedge_unpin") result(outcome)
      import :: c_char, c_int, c_ptr
      implicit none
      type(c_ptr), value :: engine
      character(kind=c_char), intent(in) :: tag(*)
      integer(c_int) :: outcome
    end function c_unpin

    subroutine c_engine_free(engine) bind(c, name="kedge_engine_free")
      import :: c_ptr
      implicit none
      type(c_ptr), value :: engine
    end subroutine c_engine_free

    subroutine c_options_free(options) bind(c, name="kedge_options_free")
      import :: c_ptr
      implicit none
      type(c_ptr), value :: options
    end subroutine c_options_free

    ! mpi.cpp
    subroutine c_end_program(text, on_all_ranks) bind(c, name="kedge_fortran_end_program")
      import :: c_char, c_int
      implicit none
      character(kind=c_char), intent(in) :: text(*)
      integer(c_int), value :: on_all_ranks
    end subroutine c_end_program

    function c_strlen(text) bind(c, name="strlen") result(length)
      import :: c_ptr, c_size_t
      implicit none
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function c_strlen
  end interface
  procedure(c_create), bind(c, name="kedge_create_output") :: c_create_output
end module kedge_m_c_api
