# Finds HDF5 (HDF5_ROOT before all other places), sets KEDGE_HDF5_INCLUDE_DIRS, and refuses headers and a library that
# do not belong together: with those, wrong constants are compiled in without a warning.

include(${CMAKE_CURRENT_LIST_DIR}/mpi_family.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/remembered.cmake)

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
set(kedge_hdf5_advice "Set HDF5_ROOT to the prefix of one HDF5, in an empty build directory.")

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

kedge_hdf5_header_line(parallel_line "^#define H5_HAVE_PARALLEL")
kedge_hdf5_header_line(version_line "^#define H5_VERSION ")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" kedge_hdf5_header_version "${version_line}")

# A parallel HDF5's header includes mpi.h. Kedge calls no MPI through it: core takes the path and nothing else.
set(kedge_hdf5_mpi_libraries)
if(parallel_line)
  set(kedge_hdf5_kind parallel)
  if(KEDGE_MPI)
    list(APPEND KEDGE_HDF5_INCLUDE_DIRS ${MPI_CXX_INCLUDE_DIRS})
    set(kedge_hdf5_mpi_libraries ${MPI_CXX_LIBRARIES})
    # By mpi.h: the libraries are unknown where the compilers are MPI's wrappers.
    kedge_find_mpi_family(kedge_hdf5_mpi)
    kedge_mpi_name(kedge_hdf5_mpi ${kedge_hdf5_mpi})
    set(kedge_hdf5_mpi_variable MPI_CXX_COMPILER)
  else()
    set(kedge_given "${MPI_C_COMPILER}")
    kedge_refuse_another(MPI_C_COMPILER)
    find_package(MPI QUIET COMPONENTS C)
    if(NOT MPI_C_FOUND AND kedge_given)
      set(MPI_C_COMPILER "${kedge_given}" CACHE FILEPATH "MPI compiler" FORCE)
      message(FATAL_ERROR "The HDF5 in ${HDF5_C_INCLUDE_DIRS} is parallel, and no MPI was found by MPI_C_COMPILER=${kedge_given}: "
        "set it to the mpicc that HDF5 was built with, or use a serial HDF5.")
    elseif(NOT MPI_C_FOUND)
      message(FATAL_ERROR "The HDF5 in ${HDF5_C_INCLUDE_DIRS} is parallel, and its header needs mpi.h, which was not "
        "found. Use a serial HDF5 (Debian: libhdf5-dev; Spack: hdf5~mpi), or set MPI_C_COMPILER to the mpicc that HDF5 was built with.")
    endif()
    kedge_remember(MPI_C_COMPILER)
    list(APPEND KEDGE_HDF5_INCLUDE_DIRS ${MPI_C_INCLUDE_DIRS})
    set(kedge_hdf5_mpi_libraries ${MPI_C_LIBRARIES})
    kedge_mpi_of_language(kedge_hdf5_mpi C)
    set(kedge_hdf5_mpi_variable MPI_C_COMPILER)
  endif()
  kedge_mpi_of_files(hdf5_family ${HDF5_C_LIBRARIES})
  if(hdf5_family AND kedge_hdf5_mpi AND NOT hdf5_family STREQUAL kedge_hdf5_mpi)
    message(FATAL_ERROR "The HDF5 library ${kedge_hdf5_library} was built with ${hdf5_family}, but the MPI found is ${kedge_hdf5_mpi} "
      "(${kedge_hdf5_mpi_variable}=${${kedge_hdf5_mpi_variable}}). Set HDF5_ROOT to an HDF5 of this MPI or to a serial one, or "
      "${kedge_hdf5_mpi_variable} to the compiler wrapper of ${hdf5_family}, in an empty build directory.")
  endif()
else()
  set(kedge_hdf5_kind serial)
endif()

# The library, asked itself. Not cached: another HDF5 may have been chosen since.
set(kedge_hdf5_probe ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/kedge-hdf5)
file(WRITE ${kedge_hdf5_probe}/parallel.c
  "int H5Pset_fapl_mpio(void);\nint main(void) { return H5Pset_fapl_mpio(); }\n")
unset(KEDGE_HDF5_LIBRARY_IS_PARALLEL CACHE)
try_compile(KEDGE_HDF5_LIBRARY_IS_PARALLEL ${kedge_hdf5_probe}/parallel ${kedge_hdf5_probe}/parallel.c
  LINK_LIBRARIES ${HDF5_C_LIBRARIES} ${kedge_hdf5_mpi_libraries})
if(KEDGE_HDF5_LIBRARY_IS_PARALLEL AND NOT parallel_line)
  message(FATAL_ERROR "HDF5's headers in ${HDF5_C_INCLUDE_DIRS} are those of a serial build, but the library "
    "${kedge_hdf5_library} is a parallel one. ${kedge_hdf5_advice}")
elseif(parallel_line AND NOT KEDGE_HDF5_LIBRARY_IS_PARALLEL)
  message(FATAL_ERROR "HDF5's headers in ${HDF5_C_INCLUDE_DIRS} are those of a parallel build, but the library "
    "${kedge_hdf5_library} is a serial one, or does not link with the MPI in ${kedge_hdf5_mpi_libraries}. ${kedge_hdf5_advice}")
endif()

if(HDF5_VERSION VERSION_LESS 1.10.8)
  message(FATAL_ERROR "Kedge needs HDF5 1.10.8 or newer, and the one in ${HDF5_C_INCLUDE_DIRS} is ${HDF5_VERSION}. Install a newer one and "
    "set HDF5_ROOT to its prefix, in an empty build directory.")
endif()

file(WRITE ${kedge_hdf5_probe}/version.c
  "#include <stdio.h>\nint H5get_libversion(unsigned*, unsigned*, unsigned*);\nint main(void) {\n  unsigned a, b, c;\n"
  "  if (H5get_libversion(&a, &b, &c) < 0) return 1;\n  printf(\"%u.%u.%u\", a, b, c);\n  return 0;\n}\n")
if(NOT CMAKE_CROSSCOMPILING)
  unset(KEDGE_HDF5_VERSION_RUNS CACHE)
  unset(KEDGE_HDF5_VERSION_COMPILES CACHE)
  try_run(KEDGE_HDF5_VERSION_RUNS KEDGE_HDF5_VERSION_COMPILES ${kedge_hdf5_probe}/version ${kedge_hdf5_probe}/version.c
    LINK_LIBRARIES ${HDF5_C_LIBRARIES} ${kedge_hdf5_mpi_libraries} RUN_OUTPUT_VARIABLE library_version)
  if(KEDGE_HDF5_VERSION_COMPILES AND KEDGE_HDF5_VERSION_RUNS EQUAL 0 AND kedge_hdf5_header_version
     AND NOT library_version STREQUAL kedge_hdf5_header_version)
    message(FATAL_ERROR "HDF5's headers in ${HDF5_C_INCLUDE_DIRS} are of version ${kedge_hdf5_header_version}, but the library "
      "${kedge_hdf5_library} is ${library_version}. ${kedge_hdf5_advice}")
  endif()
endif()

message(STATUS "HDF5 ${kedge_hdf5_header_version}, ${kedge_hdf5_kind}: ${kedge_hdf5_library}")
