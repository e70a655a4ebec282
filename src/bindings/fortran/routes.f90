! Stores the application's own files in a checkpoint.
module kedge_m_routes
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_null_char, c_size_t
  use, intrinsic :: iso_fortran_env, only: int64
  use kedge_m_c_api, only: c_route_in, c_route_out
  use kedge_m_constants, only: KEDGE_OK, KEDGE_PATH_SIZE
  use kedge_m_engine, only: kedge_engine
  use kedge_m_failures, only: on_this_rank, settle, to_c
  implicit none
  private
  public :: kedge_route_out, kedge_route_in

contains

  ! Local. For applications that write files instead of memory: returns a path on the node-local store, and kedge_commit
  ! stores the file written there as a region of this name. The path ends with `name`; all files that a rank routes in
  ! one checkpoint are in one private directory. A name that ends with "/" is a directory: everything written below it
  ! is stored. Close the file before kedge_commit, which fails if the file exceeds `max_bytes`; 0, the default, is no
  ! limit. kedge_commit also reports a failure, on all ranks; do not use the path then.
  subroutine kedge_route_out(engine, name, path, max_bytes, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: name
    character(len=:), allocatable, intent(out) :: path
    integer(int64), intent(in), optional :: max_bytes
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(len=KEDGE_PATH_SIZE) :: buffer
    integer(c_int64_t) :: bound
    integer(c_size_t) :: length
    integer(c_int) :: code

    bound = 0
    if (present(max_bytes)) bound = max_bytes
    if (bound < 0) then  ! no route has an empty name, so kedge_commit fails on all ranks
      code = c_route_out(engine%handle, to_c(""), 0_c_int64_t, buffer, int(KEDGE_PATH_SIZE, c_size_t), length)
      path = ""
      call settle(code, on_this_rank, stat, errmsg, trim(name) // ": max_bytes must not be negative")
      return
    end if
    code = c_route_out(engine%handle, to_c(name), bound, buffer, int(KEDGE_PATH_SIZE, c_size_t), length)
    call take_path(code, buffer, path)
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine kedge_route_out

  ! Local. Extracts a routed file, verifies every byte, and returns its path, which ends with `name` and is valid until
  ! kedge_close. If the name ends with "/", extracts all files that this rank routed in that directory. kedge_close also
  ! reports a failure, on all ranks.
  subroutine kedge_route_in(engine, name, path, stat, errmsg)
    type(kedge_engine), intent(in) :: engine
    character(len=*), intent(in) :: name
    character(len=:), allocatable, intent(out) :: path
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(len=KEDGE_PATH_SIZE) :: buffer
    integer(c_size_t) :: length
    integer(c_int) :: code

    code = c_route_in(engine%handle, to_c(name), buffer, int(KEDGE_PATH_SIZE, c_size_t), length)
    call take_path(code, buffer, path)
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine kedge_route_in

  subroutine take_path(code, buffer, path)
    integer(c_int), intent(in) :: code
    character(len=*), intent(in) :: buffer
    character(len=:), allocatable, intent(out) :: path

    path = ""
    if (code == KEDGE_OK) path = buffer(:index(buffer, c_null_char) - 1)
  end subroutine take_path
end module kedge_m_routes
