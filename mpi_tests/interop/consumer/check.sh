#!/usr/bin/env bash
# check.sh BUILD_DIRECTORY WORK_DIRECTORY WITH_MPI CMAKE: installs Kedge, builds a user's project against what was
# installed and runs it.
set -euo pipefail
build=$1 work=$2 with_mpi=$3 cmake=$4
project=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$work"
mkdir -p "$work"

# The consumer sees a moved installation: nothing in it may name the place it was made for.
"$cmake" --install "$build" --prefix "$work/made" >"$work/install.log"
mv "$work/made" "$work/prefix"
"$work/prefix/bin/kedge" --version
for completion in bash-completion/completions/kedge zsh/site-functions/_kedge fish/vendor_completions.d/kedge.fish; do
  grep -q verify "$work/prefix/share/$completion" || { echo "no completion in share/$completion"; exit 1; }
done
for file in share/kedge/kedge.toml share/man/man1/kedge.1 include/kedge/kedge.hpp include/kedge/kedge.h \
    include/kedge/testing/in_process_job.hpp; do
  [[ -f $work/prefix/$file ]] || { echo "$file was not installed"; exit 1; }
done
for header in mpi.hpp kedge_mpi.h; do
  if [[ $with_mpi != 1 && -e $work/prefix/include/kedge/$header ]]; then
    echo "kedge/$header was installed without MPI"
    exit 1
  fi
done
if grep -rIl "$build" "$work/prefix/lib"*/cmake; then
  echo "the package names the build directory"
  exit 1
fi

configure() { "$cmake" -S "$project" -B "$work/$1" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCONSUMER_MPI="$2" && "$cmake" --build "$work/$1"; }
cd "$work"
configure core OFF
core/without_mpi
core/without_mpi_c
core/killed_rank "$work/killed_rank"
if [[ $with_mpi == 1 ]]; then
  configure mpi ON
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export KEDGE_STORE_PATH=$work/store KEDGE_PERSISTENT_PATH=$work/checkpoints
  launch() { timeout --kill-after=5 60 mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 2 "mpi/$1"; }
  launch with_mpi | grep "was none, is 1"
  launch with_mpi | grep "was step-1, is 2"
  "$work/prefix/bin/kedge" verify "$work"/store/kedge-*
  launch with_mpi_c | grep "is 3: well"  # the same run, from C
fi
