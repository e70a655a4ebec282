! Calls of C that no public header declares; programs do not see this module.
module kedge_m_c_support
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_ptr, c_size_t
  implicit none
  public
  interface
    ! mpi.cpp
    function c_engine_new_f(comm, options, engine) bind(c, name="kedge_fortran_engine_new") result(outcome)
      import
      implicit none
      integer(c_int), value :: comm
      type(c_ptr), value :: options, engine
      integer(c_int) :: outcome
    end function c_engine_new_f

    ! mpi.cpp
    subroutine c_end_program(text, on_all_ranks) bind(c, name="kedge_fortran_end_program")
      import
      implicit none
      character(kind=c_char), intent(in) :: text(*)
      integer(c_int), value :: on_all_ranks
    end subroutine c_end_program

    function c_strlen(text) bind(c, name="strlen") result(length)
      import
      implicit none
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function c_strlen
  end interface
end module kedge_m_c_support
