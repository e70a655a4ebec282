#!/usr/bin/env bash
# hdf5_choice.sh SHARE_CMAKE WORK_DIRECTORY WITH_MPI CMAKE: which HDF5 a configure step
# takes (HDF5_ROOT comes first), and which it refuses: headers and library of two, or one of another MPI.
# Works on stand-ins for HDF5, a header and a library of three functions, so that it needs no second HDF5.
set -euo pipefail
share_cmake=$1 work=$2 with_mpi=$3 cmake=$4
rm -rf "$work"
mkdir -p "$work/project"
cd "$work"

cat >project/CMakeLists.txt <<TEXT
cmake_minimum_required(VERSION 3.25)
project(choice LANGUAGES C CXX)
set(KEDGE_MPI $with_mpi)
if(KEDGE_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
include($share_cmake/hdf5.cmake)
message(STATUS "takes \${KEDGE_HDF5_INCLUDE_DIRS} and \${HDF5_C_LIBRARIES}")
TEXT

# hdf5 NAME HEADER_KIND LIBRARY_KIND HEADER_VERSION LIBRARY_VERSION [LIBRARIES...]: makes the prefix NAME.
hdf5() {
  local name=$1 header=$2 library=$3 header_version=$4 library_version=$5 include=$work/$1/include
  shift 5
  mkdir -p "$include" "$name/lib"
  echo "#define H5_VERSION \"$header_version\"" >"$include/H5pubconf.h"
  [[ $header == serial ]] || echo "#define H5_HAVE_PARALLEL 1" >>"$include/H5pubconf.h"
  echo '#include "H5pubconf.h"' >"$include/hdf5.h"
  {
    echo "int H5get_libversion(unsigned* a, unsigned* b, unsigned* c) { *a = ${library_version//./; *b = }; return 0; }" |
      sed 's/\*b = \([0-9]*\); \*b/*b = \1; *c/'
    [[ $library == serial ]] || echo "int H5Pset_fapl_mpio(void) { return 0; }"
  } >"$name.c"
  cc -shared -fPIC -Wl,--no-as-needed -o "$name/lib/libhdf5.so" "$name.c" "$@"
}

again() { "$cmake" -S project -B build "$@" >log 2>&1; }
configure() { rm -rf build; "$cmake" -S project -B build "$@" >log 2>&1; }
takes() {
  configure "${@:2}" || { cat log; echo "refused: $1"; exit 1; }
  grep -q -- "-- takes $work/$1/include.* and $work/$1/lib/libhdf5.so" log || { cat log; echo "did not take $1"; exit 1; }
}
# The words of the message, in one line: CMake breaks lines as it likes.
refuses() { refused_by configure "$@"; }
refused_by() {
  if "$1" "${@:3}"; then cat log; echo "was accepted, instead of: $2"; exit 1; fi
  shift
  tr -s ' \n' ' ' <log | grep -- "$1" >/dev/null || { cat log; echo "did not say: $1"; exit 1; }
}

hdf5 serial serial serial 1.99.1 1.99.1
takes serial -DHDF5_ROOT="$work/serial"
takes serial -DHDF5_ROOT="$work/serial" -DHDF5_PREFER_PARALLEL=ON

# In the same build directory again: CMake would keep the first one without a word.
again -DHDF5_ROOT="$work/serial/" || { cat log; echo "refused the same HDF5_ROOT"; exit 1; }
hdf5 another serial serial 1.99.1 1.99.1
refused_by again "was configured with HDF5_ROOT=$work/serial, and .* use an empty build directory for HDF5_ROOT=$work/another" \
  -DHDF5_ROOT="$work/another"
configure -DHDF5_ROOT="$work/serial" -DHDF5_PREFER_PARALLEL=ON
again -DHDF5_PREFER_PARALLEL=TRUE || { cat log; echo "refused the same preference"; exit 1; }
configure && refused_by again "was configured without HDF5_ROOT" -DHDF5_ROOT="$work/another"

hdf5 serial_header serial parallel 1.99.1 1.99.1
refuses "are those of a serial build, but the library .* is a parallel one. Set HDF5_ROOT" -DHDF5_ROOT="$work/serial_header"
hdf5 older_header serial serial 1.98.0 1.99.1
hdf5 old serial serial 1.10.7 1.10.7
refuses "Kedge needs HDF5 1.10.8 or newer, and the one in .* is 1.10.7" -DHDF5_ROOT="$work/old"
refuses "are of version 1.98.0, but the library .* is 1.99.1. Set HDF5_ROOT" -DHDF5_ROOT="$work/older_header"

if [[ $with_mpi == 1 ]]; then
  hdf5 parallel parallel parallel 1.99.1 1.99.1
  takes parallel -DHDF5_ROOT="$work/parallel"
  grep -q "takes $work/parallel/include;/" log || { cat log; echo "the path to mpi.h is missing"; exit 1; }
  hdf5 parallel_header parallel serial 1.99.1 1.99.1
  refuses "are those of a parallel build, but the library .* is a serial one" -DHDF5_ROOT="$work/parallel_header"

  # Of the other MPI, whichever is in use: only names are looked at. Also where the compilers are the wrappers of the
  # MPI, so that CMake has no names of its libraries.
  mpicxx=$(sed -n 's/^MPI_CXX_COMPILER:[A-Z]*=//p' build/CMakeCache.txt)
  for compiler in "" "$mpicxx"; do
    refused=""
    for soname in libmpi.so.40 libmpich.so.12; do
      echo "int kedge_no_mpi;" | cc -shared -fPIC -Wl,-soname,$soname -o "$work/$soname" -x c -
      hdf5 "of_$soname" parallel parallel 1.99.1 1.99.1 "$work/$soname"
      if ! LD_LIBRARY_PATH=$work configure -DHDF5_ROOT="$work/of_$soname" ${compiler:+-DCMAKE_CXX_COMPILER="$compiler"}; then
        tr -s ' \n' ' ' <log | grep "was built with .*, but the MPI found is .* (MPI_CXX_COMPILER=" >/dev/null || { cat log; exit 1; }
        refused+="$soname "
      fi
    done
    [[ $refused == libmpi.so.40\  || $refused == libmpich.so.12\  ]] ||
      { echo "refused '$refused', not one of the two, with the compiler '$compiler'"; exit 1; }
  done
else
  # Nothing but the header needs MPI then, and it must be found for that.
  hdf5 parallel parallel parallel 1.99.1 1.99.1
  refuses "is parallel, and its header needs mpi.h" -DHDF5_ROOT="$work/parallel" -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON
  refuses "is parallel, and MPI_C_COMPILER=mpicc.nowhere did not lead to an MPI: set it" -DHDF5_ROOT="$work/parallel" -DMPI_C_COMPILER=mpicc.nowhere
  if command -v mpicc >/dev/null; then
    # Of another MPI: the variable is that of the language in which MPI was looked for.
    refused=""
    for soname in libmpi.so.40 libmpich.so.12; do
      echo "int kedge_no_mpi;" | cc -shared -fPIC -Wl,-soname,$soname -o "$work/$soname" -x c -
      hdf5 "of_$soname" parallel parallel 1.99.1 1.99.1 "$work/$soname"
      LD_LIBRARY_PATH=$work configure -DHDF5_ROOT="$work/of_$soname" ||
        refused+=$(tr -s ' \n' ' ' <log | grep -o "(MPI_C_COMPILER=.*or MPI_C_COMPILER to the compiler wrapper of")
    done
    [[ -n $refused ]] || { cat log; echo "took an HDF5 of another MPI"; exit 1; }
  fi
fi
echo "takes and refuses as it should"
