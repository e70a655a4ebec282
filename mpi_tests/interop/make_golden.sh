#!/bin/sh
# Makes the golden files of the format's present version, mpi_tests/interop/golden/v<version>, for the commit that raises
# the version. Those of older versions stay as they are.
#
# usage: make_golden.sh BUILD_DIRECTORY
#
# A version that was released is never made anew. While its number is not released yet, remove its directory first.
set -eu
build=${1:?usage: make_golden.sh BUILD_DIRECTORY}
golden=$(cd "$(dirname "$0")" && pwd)/golden
cmake --build "$build" --target write_golden
made=$("$build/bin/write_golden" "$golden")
echo "made $made; look at it with h5dump, then: git add $made"
