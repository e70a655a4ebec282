#!/usr/bin/env bash
# check.sh SOURCE WORK_DIRECTORY CMAKE MPICXX: Kedge as part of another project, its source read-only and in a path with
# a space, the project's visibility and build type left alone. Builds it with KEDGE_TEST_FULL=1; otherwise the configure step says whether it would.
set -euo pipefail
source=$1 work=$2 cmake=$3 mpicxx=$4
project=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ ! -d $work ]] || chmod -R u+w "$work"
rm -rf "$work"
mkdir -p "$work/its source"
tar -C "$source" -c --exclude='./build*' --exclude=./.git . | tar -C "$work/its source" -x
chmod -R a-w "$work/its source"
for how in add_subdirectory FetchContent; do
  "$cmake" -S "$project" -B "$work/$how" -DHOW=$how -DKEDGE_SOURCE="$work/its source" -DMPI_CXX_COMPILER="$mpicxx" >"$work/log" 2>&1 ||
    { cat "$work/log"; echo "failed: $how"; exit 1; }
  [[ ${KEDGE_TEST_FULL-} != 1 ]] || "$cmake" --build "$work/$how" --target program --parallel 2
done
# By itself, as root too: nothing is written to the source.
find "$work/its source" -newer "$work/add_subdirectory/CMakeCache.txt" -type f | grep . && { echo "the source was written to"; exit 1; }
chmod -R u+w "$work/its source"
echo "configures as part of another project"
