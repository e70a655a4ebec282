# Which MPI it is: of a project's compilers, libraries and HDF5. Used by Kedge's build and by kedgeConfig.cmake.
include(CheckCXXSymbolExists)

# kedge_find_mpi_family(RESULT): open_mpi, mpich (and what shares its ABI: Intel MPI, MVAPICH, Cray MPICH) or another_mpi,
# as include/kedge/mpi_family.h has it, of the MPI whose mpi.h a program with MPI::MPI_CXX gets.
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

# kedge_mpi_name(RESULT FAMILY): "Open MPI" or "MPICH", or nothing for another_mpi, of which libraries tell nothing.
function(kedge_mpi_name result family)
  string(REGEX REPLACE "^another_mpi$" "" name "${family}")
  string(REPLACE open_mpi "Open MPI" name "${name}")
  string(REPLACE mpich MPICH name "${name}")
  set(${result} "${name}" PARENT_SCOPE)
endfunction()

# kedge_mpi_title(RESULT FAMILY): the same for people to read, "another MPI" where there is no name.
function(kedge_mpi_title result family)
  kedge_mpi_name(name ${family})
  if(NOT name)
    set(name "another MPI")
  endif()
  set(${result} "${name}" PARENT_SCOPE)
endfunction()

# kedge_mpi_of_files(RESULT FILES...): of the MPI libraries among these files' own names and the names of what they need:
# "Open MPI", "MPICH", or nothing where there is none or it is neither.
function(kedge_mpi_of_files result)
  set(${result} "" PARENT_SCOPE)
  foreach(file IN LISTS ARGN)
    if(TARGET "${file}")
      get_target_property(imported ${file} IMPORTED)
      if(imported)
        get_target_property(file ${file} LOCATION)
      endif()
    endif()
    if(NOT EXISTS "${file}" OR NOT CMAKE_READELF)
      continue()
    endif()
    execute_process(COMMAND ${CMAKE_READELF} -d ${file} OUTPUT_VARIABLE names ERROR_QUIET)
    if(names MATCHES "\\[libmpi(_[a-z0-9_]+)?\\.so\\.([0-9]+)\\]" AND CMAKE_MATCH_2 GREATER_EQUAL 20)
      set(${result} "Open MPI" PARENT_SCOPE)
      return()
    elseif(names MATCHES "\\[lib(mpi|mpich|mpichf90|mpichfort|mpifort)(_[a-z0-9_]+)?\\.so\\.12\\]")
      set(${result} "MPICH" PARENT_SCOPE)  # and all that have its binary interface
      return()
    endif()
  endforeach()
endfunction()

# kedge_mpi_of_language(RESULT LANGUAGE): the same, of the MPI behind MPI::MPI_<LANGUAGE> (C or Fortran). Where the
# compiler is a wrapper that brings the libraries itself, they are seen in a program that it has linked.
function(kedge_mpi_of_language result language)
  kedge_mpi_of_files(name ${MPI_${language}_LIBRARIES})
  if(NOT name)
    set(directory ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/kedge-mpi)
    if(language STREQUAL "Fortran")
      set(source ${directory}/probe.f90)
      file(WRITE ${source} "program probe\n  external mpi_init\n  integer :: error\n  call mpi_init(error)\nend program\n")
    else()
      set(source ${directory}/probe.c)
      file(WRITE ${source} "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n")
    endif()
    file(REMOVE ${directory}/probe)
    unset(KEDGE_MPI_PROBE_LINKS CACHE)
    try_compile(KEDGE_MPI_PROBE_LINKS ${directory}/${language} SOURCES ${source} LINK_LIBRARIES MPI::MPI_${language}
      COPY_FILE ${directory}/probe COPY_FILE_ERROR ignored)
    unset(KEDGE_MPI_PROBE_LINKS CACHE)
    kedge_mpi_of_files(name ${directory}/probe)
  endif()
  set(${result} "${name}" PARENT_SCOPE)
endfunction()

# kedge_given_mpi_problem(RESULT LANGUAGE GIVEN): after the search, what is wrong if MPI_<LANGUAGE>_COMPILER was given and
# led nowhere, or nothing. It is not forgotten: the next run would take the first MPI of the PATH.
function(kedge_given_mpi_problem result language given)
  set(${result} "" PARENT_SCOPE)
  if(given AND NOT MPI_${language}_FOUND)
    set(MPI_${language}_COMPILER "${given}" CACHE FILEPATH "MPI compiler" FORCE)
    set(${result} "MPI_${language}_COMPILER=${given} did not lead to an MPI" PARENT_SCOPE)
  endif()
endfunction()

# kedge_mpi_problem(RESULT FAMILY LANGUAGES...): what is wrong if the compilers of these languages (CXX, C, Fortran) bring
# several MPIs, or nothing. FAMILY is that of mpi.h.
function(kedge_mpi_problem result family)
  set(${result} "" PARENT_SCOPE)
  kedge_mpi_name(name ${family})
  kedge_mpi_of_files(linked ${MPI_CXX_LIBRARIES})
  if(name AND linked AND NOT name STREQUAL linked)
    set(${result} "the compiler ${CMAKE_CXX_COMPILER} brings the mpi.h of ${name}, but MPI_CXX_COMPILER=${MPI_CXX_COMPILER} is of ${linked}: set CMAKE_CXX_COMPILER to the compiler without MPI, or to the mpicxx of ${linked}, in an empty build directory" PARENT_SCOPE)
    return()
  endif()
  set(wrapper_C mpicc)
  set(wrapper_Fortran mpif90)
  list(REMOVE_ITEM ARGN CXX)
  foreach(language IN LISTS ARGN)
    kedge_mpi_of_language(other ${language})
    if(name AND other AND NOT name STREQUAL other)
      set(variable MPI_${language}_COMPILER)
      if(NOT MPI_${language}_LIBRARIES)
        set(variable "CMAKE_${language}_COMPILER and MPI_${language}_COMPILER")  # the compiler itself is the wrapper
      endif()
      set(${result} "the ${language} compiler's MPI is ${other} (MPI_${language}_COMPILER=${MPI_${language}_COMPILER}), but that of C++ is ${name} (MPI_CXX_COMPILER=${MPI_CXX_COMPILER}): set ${variable} to the ${wrapper_${language}} of ${name}, in an empty build directory" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
