! Selects the stream for GPU memory.
module kedge_m_streams
  use, intrinsic :: iso_c_binding, only: c_intptr_t
  use kedge_m_c_api, only: c_set_stream, c_unset_stream
  use kedge_m_engine, only: kedge_engine
  use kedge_m_failures, only: on_this_rank, settle
  implicit none
  private
  public :: kedge_set_stream, kedge_unset_stream

contains

  ! Local. From now on this engine's kedge_save and kedge_load read and write memory after all work already enqueued on
  ! `stream`, a number from CUDA Fortran or acc_get_cuda_stream; 0 is the legacy default stream. It must be valid in
  ! each of these calls. Without a stream they wait for all work of the memory's context.
  subroutine kedge_set_stream(engine, stream, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    integer(c_intptr_t), intent(in) :: stream
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_set_stream(engine%handle, stream), on_this_rank, stat, errmsg)
  end subroutine kedge_set_stream

  ! Local. Undoes kedge_set_stream.
  subroutine kedge_unset_stream(engine, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg

    call settle(c_unset_stream(engine%handle), on_this_rank, stat, errmsg)
  end subroutine kedge_unset_stream
end module kedge_m_streams
