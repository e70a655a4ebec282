# Finds HDF5 (HDF5_ROOT before all other places), sets KEDGE_HDF5_INCLUDE_DIRS, and refuses headers and a library that
# do not belong together: with those, wrong constants are compiled in without a warning. If another library is missing
# (kedge_missing), HDF5 is found and remembered, and not checked.

include(${CMAKE_CURRENT_LIST_DIR}/mpi_family.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/remembered.cmake)

# kedge_hdf5_header_line(RESULT REGEX): the first line of H5pubconf.h (or of the file it selects from) that matches.
function(kedge_hdf5_header_line result regex)
  foreach(directory IN LISTS HDF5_C_INCLUDE_DIRS)
    file(GLOB headers ${directory}/H5pubconf*.h)
    foreach(header IN LISTS headers)
      file(STRINGS ${header} lines REGEX "${regex}")
      if(lines)
        list(GET lines 0 line)
        set(${result} "${line}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

# kedge_hdf5_of_mpi(): a parallel HDF5's header includes mpi.h. Kedge calls no MPI through it: core takes the path and
# nothing else. Appends to KEDGE_HDF5_INCLUDE_DIRS, sets kedge_hdf5_mpi_libraries, and refuses an HDF5 of another MPI.
function(kedge_hdf5_of_mpi)
  if(KEDGE_MPI)
    set(language CXX)
    # By mpi.h: the libraries are unknown where the compilers are MPI's wrappers.
    kedge_find_mpi_family(mpi)
    kedge_mpi_name(mpi ${mpi})
  else()
    set(language C)
    set(given "${MPI_C_COMPILER}")
    kedge_refuse_another(MPI_C_COMPILER)
    find_package(MPI QUIET COMPONENTS C)
    kedge_given_mpi_problem(problem C "${given}")
    if(problem)
      message(FATAL_ERROR "The HDF5 in ${HDF5_C_INCLUDE_DIRS} is parallel, and ${problem}: set it to the mpicc that "
        "HDF5 was built with, or use a serial HDF5.")
    elseif(NOT MPI_C_FOUND)
      message(FATAL_ERROR "The HDF5 in ${HDF5_C_INCLUDE_DIRS} is parallel, and its header needs mpi.h, which was not "
        "found. Use a serial HDF5 (Debian: libhdf5-dev; Spack: hdf5~mpi), or set MPI_C_COMPILER to the mpicc that HDF5 was built with.")
    endif()
    kedge_remember(MPI_C_COMPILER)
    kedge_mpi_of_language(mpi C)
  endif()
  set(KEDGE_HDF5_INCLUDE_DIRS ${KEDGE_HDF5_INCLUDE_DIRS} ${MPI_${language}_INCLUDE_DIRS} PARENT_SCOPE)
  set(kedge_hdf5_mpi_libraries ${MPI_${language}_LIBRARIES} PARENT_SCOPE)
  kedge_mpi_of_files(hdf5_mpi ${HDF5_C_LIBRARIES})
  if(hdf5_mpi AND mpi AND NOT hdf5_mpi STREQUAL mpi)
    set(variable MPI_${language}_COMPILER)
    message(FATAL_ERROR "The HDF5 library ${kedge_hdf5_library} was built with ${hdf5_mpi}, but the MPI found is ${mpi} "
      "(${variable}=${${variable}}). Set HDF5_ROOT to an HDF5 of this MPI or to a serial one, or ${variable} to the "
      "compiler wrapper of ${hdf5_mpi}, in an empty build directory.")
  endif()
endfunction()

set(kedge_hdf5_advice "Set HDF5_ROOT to the prefix of one HDF5, in an empty build directory.")
set(kedge_hdf5_probe ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/kedge-hdf5)

# kedge_check_hdf5_kind(PARALLEL): the library, asked itself whether it is what the header says. Not cached: another HDF5
# may have been chosen since.
function(kedge_check_hdf5_kind parallel)
  file(WRITE ${kedge_hdf5_probe}/parallel.c
    "int H5Pset_fapl_mpio(void);\nint main(void) { return H5Pset_fapl_mpio(); }\n")
  unset(KEDGE_HDF5_LIBRARY_IS_PARALLEL CACHE)
  try_compile(KEDGE_HDF5_LIBRARY_IS_PARALLEL ${kedge_hdf5_probe}/parallel ${kedge_hdf5_probe}/parallel.c
    LINK_LIBRARIES ${HDF5_C_LIBRARIES} ${kedge_hdf5_mpi_libraries})
  if(KEDGE_HDF5_LIBRARY_IS_PARALLEL AND NOT parallel)
    message(FATAL_ERROR "HDF5's headers in ${HDF5_C_INCLUDE_DIRS} are those of a serial build, but the library "
      "${kedge_hdf5_library} is a parallel one. ${kedge_hdf5_advice}")
  elseif(parallel AND NOT KEDGE_HDF5_LIBRARY_IS_PARALLEL)
    message(FATAL_ERROR "HDF5's headers in ${HDF5_C_INCLUDE_DIRS} are those of a parallel build, but the library "
      "${kedge_hdf5_library} is a serial one, or does not link with the MPI in ${kedge_hdf5_mpi_libraries}. ${kedge_hdf5_advice}")
  endif()
endfunction()

# kedge_check_hdf5_version(HEADER_VERSION): new enough, and the library's own.
function(kedge_check_hdf5_version header_version)
  if(HDF5_VERSION VERSION_LESS 1.10.8)
    message(FATAL_ERROR "Kedge needs HDF5 1.10.8 or newer, and the one in ${HDF5_C_INCLUDE_DIRS} is ${HDF5_VERSION}. Install a newer one and "
      "set HDF5_ROOT to its prefix, in an empty build directory.")
  endif()
  if(CMAKE_CROSSCOMPILING)
    return()
  endif()
  file(WRITE ${kedge_hdf5_probe}/version.c
    "#include <stdio.h>\nint H5get_libversion(unsigned*, unsigned*, unsigned*);\nint main(void) {\n  unsigned a, b, c;\n"
    "  if (H5get_libversion(&a, &b, &c) < 0) return 1;\n  printf(\"%u.%u.%u\", a, b, c);\n  return 0;\n}\n")
  unset(KEDGE_HDF5_VERSION_RUNS CACHE)
  unset(KEDGE_HDF5_VERSION_COMPILES CACHE)
  try_run(KEDGE_HDF5_VERSION_RUNS KEDGE_HDF5_VERSION_COMPILES ${kedge_hdf5_probe}/version ${kedge_hdf5_probe}/version.c
    LINK_LIBRARIES ${HDF5_C_LIBRARIES} ${kedge_hdf5_mpi_libraries} RUN_OUTPUT_VARIABLE library_version)
  if(KEDGE_HDF5_VERSION_COMPILES AND KEDGE_HDF5_VERSION_RUNS EQUAL 0 AND header_version
     AND NOT library_version STREQUAL header_version)
    message(FATAL_ERROR "HDF5's headers in ${HDF5_C_INCLUDE_DIRS} are of version ${header_version}, but the library "
      "${kedge_hdf5_library} is ${library_version}. ${kedge_hdf5_advice}")
  endif()
endfunction()

# kedge_check_hdf5(): what was found, by all of the above. Sets KEDGE_HDF5_INCLUDE_DIRS and kedge_hdf5_kind.
function(kedge_check_hdf5)
  kedge_hdf5_header_line(parallel_line "^#define H5_HAVE_PARALLEL")
  kedge_hdf5_header_line(version_line "^#define H5_VERSION ")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${version_line}")
  set(kind serial)
  set(kedge_hdf5_mpi_libraries)
  if(parallel_line)
    set(kind parallel)
    kedge_hdf5_of_mpi()
  endif()
  kedge_check_hdf5_kind("${parallel_line}")
  kedge_check_hdf5_version("${version}")
  message(STATUS "HDF5 ${version}, ${kind}: ${kedge_hdf5_library}")
  set(KEDGE_HDF5_INCLUDE_DIRS ${KEDGE_HDF5_INCLUDE_DIRS} PARENT_SCOPE)
  set(kedge_hdf5_kind ${kind} PARENT_SCOPE)
endfunction()

# Its own CMake package would give a target's name instead of a path, and what uses an installed Kedge would need it too.
set(HDF5_NO_FIND_PACKAGE_CONFIG_FILE ON)
set(kedge_hdf5_choices HDF5_ROOT HDF5_C_COMPILER_EXECUTABLE HDF5_PREFER_PARALLEL)
kedge_refuse_another(${kedge_hdf5_choices})
find_package(HDF5 QUIET COMPONENTS C)
if(NOT HDF5_FOUND)
  return()
endif()
kedge_remember(${kedge_hdf5_choices})
set(KEDGE_HDF5_INCLUDE_DIRS ${HDF5_C_INCLUDE_DIRS})
set(kedge_hdf5_library "of ${CMAKE_C_COMPILER}")  # where the compiler brings it itself
if(HDF5_C_LIBRARIES)
  list(GET HDF5_C_LIBRARIES 0 kedge_hdf5_library)  # what follows are the libraries that it was built with
endif()
set(KEDGE_HDF5_LIBRARIES ${HDF5_C_LIBRARIES})
if(kedge_hdf5_library MATCHES "\\.so")
  set(KEDGE_HDF5_LIBRARIES ${kedge_hdf5_library})  # it loads what it needs itself
endif()
if(NOT kedge_missing)
  kedge_check_hdf5()
endif()
