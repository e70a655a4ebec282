! kedge_init for communicators of `use mpi_f08`; built if the MPI library has that module for this compiler.
module kedge_m_mpi_f08
  use kedge_m_engine, only: kedge_engine, kedge_init_integer
  use kedge_m_options, only: kedge_options
  use mpi_f08, only: MPI_Comm
  implicit none
  private
  public :: kedge_init_f08

contains

  subroutine kedge_init_f08(engine, comm, options, stat, errmsg)
    type(kedge_engine), intent(inout) :: engine
    type(MPI_Comm), intent(in) :: comm
    type(kedge_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call kedge_init_integer(engine, comm%MPI_VAL, options, stat, errmsg)
  end subroutine kedge_init_f08
end module kedge_m_mpi_f08
