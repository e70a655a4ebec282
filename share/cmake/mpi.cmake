# Finds MPI (MPI_CXX_COMPILER says which), the same for all languages. Sets KEDGE_MPI_FAMILY, and the wrappers that an
# installation names: KEDGE_MPI_CXX_COMPILER, KEDGE_MPI_Fortran_COMPILER.
include(${CMAKE_CURRENT_LIST_DIR}/mpi_family.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/remembered.cmake)

set(MPI_CXX_SKIP_MPICXX ON)  # the C++ bindings of MPI-2 are not used
set(kedge_mpi_languages CXX)
if(KEDGE_FORTRAN)
  list(APPEND kedge_mpi_languages Fortran)
endif()
set(kedge_mpi_choices MPI_HOME)
foreach(language IN LISTS kedge_mpi_languages)
  list(APPEND kedge_mpi_choices MPI_${language}_COMPILER)
  set(kedge_given_${language} "${MPI_${language}_COMPILER}")
endforeach()
kedge_refuse_another(${kedge_mpi_choices})
find_package(MPI QUIET COMPONENTS ${kedge_mpi_languages})
foreach(language IN LISTS kedge_mpi_languages)
  if(NOT MPI_${language}_FOUND AND kedge_given_${language})
    # Not forgotten: the next run would take the first MPI of the PATH.
    set(MPI_${language}_COMPILER "${kedge_given_${language}}" CACHE FILEPATH "MPI compiler" FORCE)
    message(FATAL_ERROR "No MPI was found by MPI_${language}_COMPILER=${kedge_given_${language}}: set it to the compiler "
      "wrapper of an installed MPI (mpicxx for MPI_CXX_COMPILER, mpif90 for MPI_Fortran_COMPILER).")
  endif()
endforeach()
if(NOT MPI_FOUND)
  kedge_report_missing(MPI libopenmpi-dev openmpi)
  return()
endif()
kedge_remember(${kedge_mpi_choices})

kedge_find_mpi_family(KEDGE_MPI_FAMILY)
kedge_mpi_problem(kedge_problem ${KEDGE_MPI_FAMILY} ${kedge_mpi_languages})
if(kedge_problem)
  message(FATAL_ERROR "Kedge can be built with one MPI only: ${kedge_problem}.")
endif()

foreach(language IN LISTS kedge_mpi_languages)
  unset(KEDGE_MPI_${language}_COMPILER)
  if(MPI_${language}_COMPILER)
    find_program(KEDGE_MPI_${language}_COMPILER "${MPI_${language}_COMPILER}" NO_CACHE)  # it may have been given by its name alone
  endif()
  # What kedgeConfig.cmake may search with: a wrapper, not a compiler beside which the MPI was named by its libraries.
  set(kedge_mpi_${language}_has_wrapper TRUE)
  if(NOT KEDGE_MPI_${language}_COMPILER)
    set(KEDGE_MPI_${language}_COMPILER "${CMAKE_${language}_COMPILER}")
    if(MPI_${language}_LIBRARIES)
      set(kedge_mpi_${language}_has_wrapper FALSE)
    endif()
  endif()
endforeach()
