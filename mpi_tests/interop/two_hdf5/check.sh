#!/usr/bin/env bash
# check.sh PREFIX WORK_DIRECTORY CMAKE LAUNCH MPI_FAMILY: an application whose own library uses parallel HDF5, linked with
# the Kedge installed in PREFIX in every order: it works, whichever HDF5 Kedge was built with.
set -euo pipefail
prefix=$1 work=$2 cmake=$3 launch=$4 family=$5
project=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
wrapper=h5pcc.${family/open_mpi/openmpi}
if ! command -v "$wrapper" >/dev/null; then
  echo "skipped: there is no $wrapper, the compiler of a parallel HDF5 of this MPI (Debian: libhdf5-${family/open_mpi/openmpi}-dev)"
  exit 77
fi
rm -rf "$work"
mkdir -p "$work"
cd "$work"
export LD_LIBRARY_PATH=$(dirname "$(ls "$prefix"/lib*/libkedge_core.* | head -n 1)") KEDGE_STORE_PATH=$work/store KEDGE_PERSISTENT_PATH=$work/checkpoints

tried=0
mpicxx=$(PKG_CONFIG_PATH=$(echo "$prefix"/lib*/pkgconfig) pkg-config --variable=mpicxx kedge)
for case in STATIC-kedge SHARED-HDF5; do
  "$cmake" -S "$project" -B "$case" -DOWN_LIBRARY="${case%-*}" -DFOUND_FIRST="${case#*-}" -DCMAKE_PREFIX_PATH="$prefix" \
    -DHDF5_C_COMPILER_EXECUTABLE="$(command -v "$wrapper")" -DMPI_CXX_COMPILER="$mpicxx" \
    -DMPI_C_COMPILER="${mpicxx/cxx/cc}" >configure.log 2>&1 || { cat configure.log; exit 1; }
  "$cmake" --build "$case" >build.log 2>&1 || { cat build.log; exit 1; }
  for order in own kedge; do
    said=$(timeout --kill-after=5 60 "$launch" -n 2 "$case/two_hdf5_${order}_first" 2>&1) ||
      { echo "$said"; echo "failed: $case, linked $order first"; exit 1; }
    grep -q "both are well after step" <<<"$said" || { echo "$said"; exit 1; }
    tried=$((tried + 1))
  done
done
# Without CMake, as the guide says: the application's HDF5 comes first, and its program calls that one.
directory=$("$wrapper" -show | grep -o -- '-L[^ ]*' | head -n 1)
own=${directory#-L}/libhdf5.so
flags() { PKG_CONFIG_PATH=$(echo "$prefix"/lib*/pkgconfig) pkg-config "$@" kedge; }
"$wrapper" -c "$project/own_library.c" -o own_library.o
eval "$mpicxx -std=c++20 -c $project/main.cpp -o main.o $(flags --cflags)"
eval "$mpicxx -o by_hand main.o own_library.o $own $(flags --libs)"
said=$(timeout --kill-after=5 60 "$launch" -n 2 ./by_hand 2>&1) || { echo "$said"; echo "failed: linked by hand"; exit 1; }
grep -q "both are well after step" <<<"$said" || { echo "$said"; exit 1; }
names() { readelf -d "$1" | sed -n "s/.*($2).*\[\(libhdf5[^]]*\)\].*/\1/p" | head -n 1; }
[[ $(names by_hand NEEDED) == $(names "$own" SONAME) ]] || { readelf -d by_hand; echo "calls another HDF5 than its own"; exit 1; }
tried=$((tried + 1))
echo "$tried programs with their own parallel HDF5 work"
