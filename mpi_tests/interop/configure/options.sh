#!/usr/bin/env bash
# options.sh SOURCE WORK_DIRECTORY CMAKE [MPICXX [MPIFORT]]: the configure step ends well with each option of CMakeLists.txt changed
# alone, ON and OFF. One build directory, so that the libraries are looked for once; KEDGE_TESTS is on where it is not
# the option tried, since tests name most targets.
set -euo pipefail
source=$1 work=$2 cmake=$3 mpicxx=${4-} mpifort=${5-}
rm -rf "$work"
mkdir -p "$work"
configure() {
  "$cmake" -S "$source" -B "$work/build" "${mpi[@]}" "$@" >"$work/log" 2>&1 || { cat "$work/log"; echo "failed with $*"; exit 1; }
}

# What needs an MPI or a compiler for Fortran that this build does not have stays as it is.
mpi=(${mpicxx:+"-DMPI_CXX_COMPILER=$mpicxx"} ${mpifort:+"-DMPI_Fortran_COMPILER=$mpifort"}) fixed=""
[[ -n $mpifort ]] || fixed+=" KEDGE_FORTRAN"
[[ -n $mpicxx ]] || fixed+=" KEDGE_MPI"
mapfile -t options < <(sed -n 's/^option(\([A-Z_]*\) .*/\1/p' "$source/CMakeLists.txt")
((${#options[@]} >= 6)) || { echo "CMakeLists.txt has only these options: ${options[*]}"; exit 1; }
defaults=()
for option in "${options[@]}"; do
  defaults+=("-D$option=$(sed -n "s/^option($option .* \(ON\|OFF\|\${PROJECT_IS_TOP_LEVEL}\))$/\1/p" "$source/CMakeLists.txt" |
    sed 's/\$.*/ON/')")
  [[ " $fixed " != *" KEDGE_MPI "* || $option != KEDGE_MPI ]] || defaults[-1]=-DKEDGE_MPI=OFF
done
tried=0
for option in "${options[@]}"; do
  for value in ON OFF; do
    [[ " ${defaults[*]} " != *" -D$option=$value "* ]] || continue  # that is what all the others are tried with
    [[ " $fixed " != *" $option "* ]] || continue
    configure "${defaults[@]}" "-D$option=$value"
    tried=$((tried + 1))
  done
done
configure "${defaults[@]}"

# What was chosen is said at the end.
grep -q "^-- Kedge .*: Release, static libraries, Fortran no, tools yes" "$work/log" || { cat "$work/log"; echo "no summary"; exit 1; }
[[ -z $mpicxx ]] || grep -q "^-- MPI: .* ($mpicxx)" "$work/log" || { cat "$work/log"; echo "the MPI is not named"; exit 1; }

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

# A wrong HDF5_ROOT is named where the missing libraries are listed.
if "$cmake" -S "$source" -B "$work/no_hdf5" "${mpi[@]}" "${defaults[@]}" -DHDF5_ROOT="$work/nowhere" >"$work/log" 2>&1; then
  echo "an HDF5_ROOT that does not exist was taken"
  exit 1
fi
tr -s ' \n' ' ' <"$work/log" | grep -q "HDF5_ROOT is set to $work/nowhere, and no HDF5 was found there" || { cat "$work/log"; exit 1; }
echo "configured with $tried options changed, one at a time"
