#!/usr/bin/env bash
# mpi_choice.sh SHARE_CMAKE WORK_DIRECTORY CMAKE MPICXX [MPIFORT]: which MPI a configure step
# takes for all languages, the one that was named, and which it refuses: a misspelt one, another in the same directory.
# MPICXX and MPIFORT are of the MPI in use; what needs another one is left out where there is none (Debian's names).
set -euo pipefail
share_cmake=$1 work=$2 cmake=$3 mpicxx=$4 mpifort=${5-}
rm -rf "$work"
mkdir -p "$work/project"
cd "$work"
cat >project/CMakeLists.txt <<TEXT
cmake_minimum_required(VERSION 3.25)
project(choice LANGUAGES C CXX)
function(kedge_report_missing)
  message(FATAL_ERROR "no MPI")
endfunction()
if(KEDGE_FORTRAN)
  enable_language(Fortran)
endif()
include($share_cmake/mpi.cmake)
message(STATUS "takes \${KEDGE_MPI_FAMILY} of \${KEDGE_MPI_CXX_COMPILER}, wrapper \${kedge_mpi_CXX_has_wrapper}")
TEXT

again() { "$cmake" -S project -B build "$@" >log 2>&1; }
configure() { rm -rf build; again "$@"; }
says() { tr -s ' \n' ' ' <log | grep -- "$1" >/dev/null || { cat log; echo "did not say: $1"; exit 1; }; }
takes() { configure "${@:2}" || { cat log; echo "refused: $1"; exit 1; }; says "$1"; }
refuses() { refused_by configure "$@"; }
refused_by() {
  if "$1" "${@:3}"; then cat log; echo "was accepted, instead of: $2"; exit 1; fi
  says "$2"
}

# A misspelt one is named, and not forgotten by the next run for the first MPI of the PATH.
refuses "MPI_CXX_COMPILER=mpicxx.nowhere did not lead to an MPI: set it to" -DMPI_CXX_COMPILER=mpicxx.nowhere
refused_by again "MPI_CXX_COMPILER=mpicxx.nowhere did not lead to an MPI: set it to"
refuses "MPI_CXX_COMPILER=/nowhere/mpicxx did not lead to an MPI: set it to" -DMPI_CXX_COMPILER=/nowhere/mpicxx

takes "takes [a-z_]* of $mpicxx, wrapper TRUE" -DMPI_CXX_COMPILER="$mpicxx"
family=$(sed -n 's/^-- takes \([a-z_]*\) of .*/\1/p' log)
again -DMPI_CXX_COMPILER="${mpicxx##*/}" || { cat log; echo "refused the same MPI, by its name"; exit 1; }
# Named by its libraries: there is no wrapper, and the installed package must not name NOTFOUND.
cache() { sed -n "s/^$1:[A-Z]*=//p" build/CMakeCache.txt; }
library=$(cache MPI_CXX_LIB_NAMES) include=$(cache MPI_CXX_COMPILER_INCLUDE_DIRS)
library=${library##*;}  # of several, the last is the library itself
takes "takes $family of /.*, wrapper FALSE" -DMPI_CXX_LIB_NAMES="$library" -DMPI_CXX_COMPILER_INCLUDE_DIRS="$include" \
  -DMPI_CXX_HEADER_DIR="${include%%;*}" -DMPI_"$library"_LIBRARY="$(cache "MPI_${library}_LIBRARY")"
# Where the compiler is the wrapper, and a warning that mpi.h has is an error (CMake leaves -Werror out of such checks).
takes "takes $family of $mpicxx, wrapper TRUE" -DCMAKE_CXX_COMPILER="$mpicxx"
"$cmake" -S project -B build -DCMAKE_CXX_FLAGS="-Wpadded -Werror" \
  -U 'KEDGE_IS*' -U 'KEDGE_HAS*' >log 2>&1 || { cat log; exit 1; }
says "takes $family of $mpicxx"

other=openmpi
[[ $family != open_mpi ]] || other=mpich
other_cxx=$(command -v mpicxx.$other || true) other_fort=$(command -v mpif90.$other || true)
if [[ -z $other_cxx ]]; then
  echo "takes and refuses as it should; there is no other MPI here, whose cases were not tried"
  exit 0
fi
takes "takes $family" -DMPI_CXX_COMPILER="$mpicxx"
refused_by again "was configured with MPI_CXX_COMPILER=$mpicxx, .* use an empty build directory for MPI_CXX_COMPILER=$other_cxx" \
  -DMPI_CXX_COMPILER="$other_cxx"
refuses "brings the mpi.h of .*, but MPI_CXX_COMPILER=$mpicxx is of .*: set CMAKE_CXX_COMPILER to" \
  -DCMAKE_CXX_COMPILER="$other_cxx" -DMPI_CXX_COMPILER="$mpicxx"
if [[ -n $mpifort && -n $other_fort ]]; then
  words="Kedge can be built with one MPI only: the Fortran compiler's MPI is .* (MPI_Fortran_COMPILER=$other_fort), but that of C++"
  fortran=(-DKEDGE_FORTRAN=ON -DMPI_CXX_COMPILER="$mpicxx")
  takes "takes $family" "${fortran[@]}" -DMPI_Fortran_COMPILER="$mpifort"
  refuses "$words" "${fortran[@]}" -DMPI_Fortran_COMPILER="$other_fort"
  refuses "$words is .*: set CMAKE_Fortran_COMPILER and MPI_Fortran_COMPILER to" "${fortran[@]}" \
    -DCMAKE_Fortran_COMPILER="$other_fort"
fi
echo "takes and refuses as it should"
