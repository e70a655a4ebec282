#!/usr/bin/env bash
# each_option.sh SOURCE WORK_DIRECTORY CMAKE BUILD_DIRECTORY: The configure step ends well
# with each of Kedge's options changed alone.
set -euo pipefail
source=$1 work=$2 cmake=$3 build=$4
rm -rf "$work"
mkdir -p "$work"
# With the MPI, HDF5 and nvcc of this build.
mapfile -t same < <(sed -n -E 's/^((MPI_C|MPI_CXX|MPI_Fortran|HDF5_C)_COMPILER(_EXECUTABLE)?|HDF5_PREFER_PARALLEL|CMAKE_CUDA_COMPILER):[A-Z]+=(.+)$/-D\1=\4/p' \
  "$build/CMakeCache.txt" | grep -v NOTFOUND)
tried=0
while read -r option default; do
  [[ $default == ON ]] && value=OFF || value=ON
  [[ $default == OFF || $default == ON ]] || value=OFF  # on where Kedge is the top level
  # Without Fortran in this build, the wrapper of the PATH may be of another MPI, which would be refused.
  if [[ $option == KEDGE_FORTRAN && " ${same[*]} " != *" -DMPI_Fortran_COMPILER="* ]]; then continue; fi
  python=()
  if [[ $option == KEDGE_PYTHON ]]; then  # it requires nanobind
    found=$(sed -n 's/^_\?Python_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt" | head -n 1)
    [[ -n $found ]] || continue
    python=(-DPython_EXECUTABLE="$found")
  fi
  rm -rf "$work/configured"
  "$cmake" -S "$source" -B "$work/configured" "${same[@]}" "${python[@]}" "-D$option=$value" >"$work/log" 2>&1 ||
    { cat "$work/log"; echo "does not configure with $option=$value"; exit 1; }
  tried=$((tried + 1))
done < <(sed -n -E 's/^option\((KEDGE_[A-Z_]+) "[^"]*" ([^)]*)\)$/\1 \2/p' "$source/CMakeLists.txt")
((tried >= 5)) || { echo "only $tried options were found in CMakeLists.txt"; exit 1; }
rm -rf "$work/configured"
echo "configures with each of $tried options turned over"
