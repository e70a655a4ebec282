! Options: as in the configuration file and the environment, or set by the program.
module kedge_m_options
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_int, c_null_ptr, c_ptr, c_size_t
  use kedge_m_c_api, only: c_options_free, c_options_get, c_options_load, c_options_set
  use kedge_m_constants, only: KEDGE_OK
  use kedge_m_failures, only: on_this_rank, reported_later, settle, to_c
  implicit none
  private
  public :: kedge_options_load, kedge_options_set, kedge_options_get, kedge_options_free

  ! Made by kedge_options_load, freed by kedge_options_free. A copy refers to the same options. Its component is private
  ! to Kedge.
  type, public :: kedge_options
    type(c_ptr) :: handle = c_null_ptr
  end type kedge_options

contains

  ! Local. Loads defaults, then the configuration file, then environment variables; kedge_init reports the first error
  ! in them, on all ranks.
  subroutine kedge_options_load(options, stat, errmsg)
    type(kedge_options), intent(inout) :: options
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: loaded
    integer(c_int) :: code

    code = c_options_load(loaded)
    if (code == KEDGE_OK) then
      call c_options_free(options%handle)
      options%handle = loaded
    end if
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine kedge_options_load

  ! Local. Sets one option, e.g. ("redundancy.every", "2"): names as in the configuration file, values as in the
  ! environment. kedge_init also reports a failure, on all ranks, so a program without `stat` continues; but if the
  ! options were not loaded, nothing can report it later, so the program ends.
  subroutine kedge_options_set(options, name, value, stat, errmsg)
    type(kedge_options), intent(in) :: options
    character(len=*), intent(in) :: name, value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int) :: code

    code = c_options_set(options%handle, to_c(name), to_c(value))
    if (c_associated(options%handle)) then
      call settle(code, reported_later, stat, errmsg)
    else
      call settle(code, on_this_rank, stat, errmsg, "kedge_options_set: call kedge_options_load first")
    end if
  end subroutine kedge_options_set

  ! Local. The option's value as text.
  subroutine kedge_options_get(options, name, value, stat, errmsg)
    type(kedge_options), intent(in) :: options
    character(len=*), intent(in) :: name
    character(len=:), allocatable, intent(out) :: value
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char) :: nothing(1)
    integer(c_size_t) :: length
    integer(c_int) :: code

    code = c_options_get(options%handle, to_c(name), nothing, 1_c_size_t, length)
    if (code == KEDGE_OK) call read_value(options%handle, to_c(name), length, value, code)
    call settle(code, on_this_rank, stat, errmsg)
  end subroutine kedge_options_get

  ! Local. Frees the options, if there are any.
  subroutine kedge_options_free(options)
    type(kedge_options), intent(inout) :: options

    call c_options_free(options%handle)
    options%handle = c_null_ptr
  end subroutine kedge_options_free

  subroutine read_value(handle, name, length, value, code)
    type(c_ptr), intent(in) :: handle
    character(len=*), intent(in) :: name
    integer(c_size_t), intent(in) :: length
    character(len=:), allocatable, intent(inout) :: value
    integer(c_int), intent(inout) :: code
    character(len=length + 1) :: buffer
    integer(c_size_t) :: whole

    code = c_options_get(handle, name, buffer, length + 1, whole)
    if (code == KEDGE_OK) value = buffer(:length)
  end subroutine read_value
end module kedge_m_options
