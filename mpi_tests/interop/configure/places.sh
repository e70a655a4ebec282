#!/usr/bin/env bash
# places.sh SOURCE WORK_DIRECTORY CMAKE [MPICXX]: what the configure step says of its choices, where an installation lies
# whose places are absolute, and what is said of a wrong HDF5_ROOT. Without MPICXX, Kedge is configured without MPI.
set -euo pipefail
source=$1 work=$2 cmake=$3 mpicxx=${4-}
rm -rf "$work"
mkdir -p "$work"
choices=(-DKEDGE_TESTS=OFF -DKEDGE_MPI=OFF)
[[ -z $mpicxx ]] || choices=(-DKEDGE_TESTS=OFF -DMPI_CXX_COMPILER="$mpicxx")
configure() {
  "$cmake" -S "$source" -B "$work/build" "${choices[@]}" "$@" >"$work/log" 2>&1 || { cat "$work/log"; echo "failed with $*"; exit 1; }
}

# Absolute places: below the prefix they move with it, elsewhere they stay.
in_pc() { grep -q -x -F -- "$1" "$work/build/share/kedge-core.pc" || { cat "$work/build/share/kedge-core.pc"; echo "not in it: $1"; exit 1; }; }
configure -DCMAKE_INSTALL_PREFIX=/opt/kedge -DCMAKE_INSTALL_LIBDIR=/opt/kedge/lib/deep -DCMAKE_INSTALL_INCLUDEDIR=/opt/kedge/include
in_pc 'prefix=${pcfiledir}/../../..'
in_pc 'libdir=${prefix}/lib/deep'
in_pc 'includedir=${prefix}/include'
configure -DCMAKE_INSTALL_LIBDIR=/elsewhere/lib
in_pc 'prefix=/opt/kedge'
in_pc 'libdir=/elsewhere/lib'
in_pc 'includedir=${prefix}/include'

# What was chosen is said at the end.
grep -q "^-- Kedge .*: Release, static libraries, Fortran no, Python no, tools yes, tests no" "$work/log" || { cat "$work/log"; echo "no summary"; exit 1; }
[[ -z $mpicxx ]] || grep -q "^-- MPI: .* ($mpicxx)" "$work/log" || { cat "$work/log"; echo "the MPI is not named"; exit 1; }

# refuses WORDS DIRECTORY ARGUMENTS...
refuses() {
  local words=$1 directory=$2
  shift 2
  if "$cmake" -S "$source" -B "$work/$directory" "${choices[@]}" "$@" >"$work/log" 2>&1; then
    echo "was configured, instead of: $words"
    exit 1
  fi
  tr -s ' \n' ' ' <"$work/log" | grep -q -- "$words" || { cat "$work/log"; echo "did not say: $words"; exit 1; }
}

# What is missing is listed, with what it takes to do without.
refuses "spdlog 1.10: libspdlog-dev (Debian), spdlog (Spack) On Debian, share/kedge/install-dependencies installs" missing \
  -DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON
# What was found is remembered all the same, as CMake keeps it.
refuses "without HDF5_ROOT, and .* an empty build directory" missing -DCMAKE_DISABLE_FIND_PACKAGE_spdlog=OFF -DHDF5_ROOT="$work"
refuses "GTest 1.12: .* configure with -DKEDGE_TESTS=OFF. On Debian, share/kedge/install-dependencies test installs" no_tests \
  -DKEDGE_TESTS=ON -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON
[[ -z $mpicxx ]] || refuses "MPI 3: .* (or configure with -DKEDGE_MPI=OFF for the library without MPI)" no_mpi \
  -DMPI_CXX_COMPILER= -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON
# A wrong HDF5_ROOT is named where the missing libraries are listed.
refuses "HDF5_ROOT is set to $work/nowhere, and no HDF5 was found there" no_hdf5 -DHDF5_ROOT="$work/nowhere"
echo "says what was chosen, and where it lies"
