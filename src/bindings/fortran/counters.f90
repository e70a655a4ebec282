! Counters of an engine.
module kedge_m_counters
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: int64
  use kedge_m_c_api
  use kedge_m_constants, only: KEDGE_OK
  use kedge_m_engine, only: kedge_engine
  use kedge_m_failures, only: on_this_rank, settle
  implicit none
  private
  public :: kedge_get_counters

  ! What an engine has done since kedge_init, on this rank. Bytes are of this rank's own containers. Times are in
  ! seconds: `blocked` is the program's waiting time in kedge_create to kedge_commit, the others are times from a commit
  ! until it reached the level, for commits that were due there.
  type, public :: kedge_counters
    integer(int64) :: commits = 0             ! committed checkpoints
    integer(int64) :: commits_failed = 0      ! checkpoints that failed in kedge_create or kedge_commit
    integer(int64) :: protections = 0         ! commits that became protected
    integer(int64) :: protections_failed = 0  ! attempts that failed
    integer(int64) :: flushes = 0             ! commits that became persistent
    integer(int64) :: flushes_failed = 0      ! commits whose flush failed, after the last retry
    integer(int64) :: flush_retries = 0       ! retries of failed flushes (persistent.retries)
    integer(int64) :: retired = 0             ! commits that left the node-local stores
    integer(int64) :: opens = 0               ! opened checkpoints
    integer(int64) :: pending = 0             ! commits now pending in the background
    integer(int64) :: saved_bytes = 0         ! committed
    integer(int64) :: protected_bytes = 0     ! of commits that became protected
    integer(int64) :: flushed_bytes = 0       ! of commits that became persistent
    integer(int64) :: fetched_bytes = 0       ! fetched from the prefix by kedge_open
    double precision :: blocked_s = 0         ! by all commits together
    double precision :: blocked_last_s = 0    ! by the last commit
    double precision :: protected_last_s = 0  ! of the last commit that became protected
    double precision :: protected_max_s = 0   ! the longest so far
    double precision :: persistent_last_s = 0 ! of the last commit that became persistent
    double precision :: persistent_max_s = 0  ! the longest so far
  end type kedge_counters

contains

  ! Local. Copies this rank's counters of the engine.
  subroutine kedge_get_counters(engine, counters, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    type(kedge_counters), intent(inout) :: counters
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_counters) :: known
    integer(c_int) :: code

    code = c_get_counters(engine%handle, known)
    if (code == KEDGE_OK) then
      counters%commits = known%commits
      counters%commits_failed = known%commits_failed
      counters%protections = known%protections
      counters%protections_failed = known%protections_failed
      counters%flushes = known%flushes
      counters%flushes_failed = known%flushes_failed
      counters%flush_retries = known%flush_retries
      counters%retired = known%retired
      counters%opens = known%opens
      counters%pending = known%pending
      counters%saved_bytes = known%saved_bytes
      counters%protected_bytes = known%protected_bytes
      counters%flushed_bytes = known%flushed_bytes
      counters%fetched_bytes = known%fetched_bytes
      counters%blocked_s = known%blocked_s
      counters%blocked_last_s = known%blocked_last_s
      counters%protected_last_s = known%protected_last_s
      counters%protected_max_s = known%protected_max_s
      counters%persistent_last_s = known%persistent_last_s
      counters%persistent_max_s = known%persistent_max_s
    end if
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine kedge_get_counters
end module kedge_m_counters
