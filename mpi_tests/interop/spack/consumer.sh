#!/usr/bin/env bash
# What a user does with an installed Kedge: called by check.sh, with its variables.
#   consumer.sh load       loads it and calls the command
#   consumer.sh consumer   builds and runs a project that names no MPI, with Kedge loaded, and with nothing but its prefix
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hash=$(cat "$scope/hash")
in_spack() { "$spack_root/bin/spack" -C "$scope" "$@"; }

load() {
  local commands
  commands=$(in_spack load --sh "/$hash")
  eval "$commands"
}

# build_and_run HOW CMAKE_ARGUMENTS...
build_and_run() {
  local build=$work/consumer/$combination-$1 with_mpi=ON library
  shift
  [[ $mpi != none ]] || with_mpi=OFF
  rm -rf "$build"
  cmake -S "$here/../consumer" -B "$build" -DCONSUMER_MPI=$with_mpi "$@"
  cmake --build "$build"
  cd "$build"
  ./without_mpi
  ./killed_rank "$build/killed_rank_stores"
  case $mpi in
    none) return 0 ;;
    openmpi) library=libmpi.so.40 ;;
    mpich) library=libmpich.so.12 ;;
  esac
  ldd with_mpi >libraries
  grep "$library" libraries || { echo "the consumer is not linked with $mpi:"; grep -i mpi libraries; exit 1; }
  export KEDGE_STORE_PATH=$build/store KEDGE_PERSISTENT_PATH=$build/checkpoints
  launch() { timeout --kill-after=5 60 "$here/../../../share/kedge/launch" --with "$work/$mpi/bin/mpiexec" -n 2 "./$1"; }
  launch with_mpi | grep "was none, is 1"
  launch with_mpi | grep "was step-1, is 2"
}

case $1 in
  load)
    load
    [[ $spec != *+python* ]] || python3 -c 'import kedge; print(kedge.__file__)' | grep "^$work/opt/"
    [[ $spec != *~tools* ]] || exit 0
    [[ $(command -v kedge) == "$work/opt/"* ]] || { echo "kedge on the PATH is $(command -v kedge)"; exit 1; }
    kedge --version
    ;;
  consumer)
    prefix=$(in_spack location -i "/$hash")
    (load; build_and_run loaded)
    build_and_run prefix -DCMAKE_PREFIX_PATH="$prefix"
    ;;
esac
