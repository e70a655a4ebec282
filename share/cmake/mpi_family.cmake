# kedge_find_mpi_family(RESULT): open_mpi, mpich (and what shares its ABI: Intel MPI, MVAPICH, Cray MPICH) or another_mpi,
# as include/kedge/mpi_family.h has it, of the MPI behind MPI::MPI_CXX. Used by Kedge's build and by kedgeConfig.cmake.
include(CheckCXXSymbolExists)

function(kedge_find_mpi_family result)
  set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_CXX)
  set(CMAKE_REQUIRED_QUIET TRUE)
  # The answer belongs to one mpi.h: another one is asked again.
  get_target_property(directories MPI::MPI_CXX INTERFACE_INCLUDE_DIRECTORIES)
  string(SHA1 of "${directories} ${MPI_CXX_COMPILER}")
  string(SUBSTRING ${of} 0 8 of)
  check_cxx_symbol_exists(OPEN_MPI mpi.h KEDGE_IS_OPEN_MPI_${of})
  check_cxx_symbol_exists(MPICH_VERSION mpi.h KEDGE_IS_MPICH_${of})
  check_cxx_symbol_exists(MPICH_NAME mpi.h KEDGE_HAS_MPICH_NAME_${of})
  set(family another_mpi)
  if(KEDGE_IS_OPEN_MPI_${of})
    set(family open_mpi)
  elseif(KEDGE_IS_MPICH_${of} OR KEDGE_HAS_MPICH_NAME_${of})
    set(family mpich)
  endif()
  set(${result} ${family} PARENT_SCOPE)
endfunction()
