#!/usr/bin/env bash
# Installs Kedge with an existing Spack, tests it and uses it. share/doc/spack.md shows what it prints.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: check.sh [--all | --list | COMBINATION ...]
A COMBINATION is MPI-HDF5-LIBRARIES-SOURCE, with variants behind it if wanted:
  MPI        openmpi, mpich, none          HDF5     serial, parallel
  LIBRARIES  shared, static                SOURCE   tree (what is committed), archive (of share/kedge/archive)
  for example openmpi-serial-shared-tree~tools~examples. Without one: the first two of --list.
Environment:
  SPACK_CHECK_ROOT      the Spack to use (a directory with bin/spack)
  SPACK_CHECK_PACKAGES  its package repository (a directory with repos/spack_repo/builtin)
  SPACK_CHECK_PYTHON    where Python finds clingo, and nanobind for +python (pip install --target)
  SPACK_CHECK_WORK      work directory, kept for the next call (default: kedge-spack in the temporary directory)
Everything else comes from this machine; nothing is downloaded and nothing of the user's Spack configuration is read.
Exit status: 0 all passed, 1 failed, 77 skipped: no Spack here.
TEXT
}

first=(openmpi-parallel-shared-tree mpich-serial-static-archive)
others=(openmpi-serial-static-tree openmpi-serial-shared-tree openmpi-parallel-static-tree mpich-parallel-shared-tree
  mpich-parallel-static-tree mpich-serial-shared-tree none-serial-shared-tree none-serial-static-archive
  openmpi-serial-shared-tree~tools openmpi-parallel-static-tree~examples openmpi-serial-shared-tree+fortran
  openmpi-serial-shared-tree+python)
case "${1-}" in
  -h | --help) usage; exit 0 ;;
  --list) printf '%s\n' "${first[@]}" "${others[@]}"; exit 0 ;;
  --all) combinations=("${first[@]}" "${others[@]}") ;;
  -*) usage >&2; exit 2 ;;
  "") combinations=("${first[@]}") ;;
  *) combinations=("$@") ;;
esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "$here/../../.." && pwd)
. "$here/machine.sh"  # mpi_prefix, hdf5_prefix, packages_yaml
spack_root=${SPACK_CHECK_ROOT-} packages=${SPACK_CHECK_PACKAGES-} python=${SPACK_CHECK_PYTHON-}
work=${SPACK_CHECK_WORK-${TMPDIR:-/tmp}/kedge-spack}
builtin=$packages/repos/spack_repo/builtin

skip() {
  echo "skipped: $1"
  echo "share/doc/spack.md says how to get a Spack that needs no network; then set SPACK_CHECK_ROOT, SPACK_CHECK_PACKAGES"
  echo "and SPACK_CHECK_PYTHON (--help)."
  exit 77
}
[[ -n $spack_root ]] || skip "SPACK_CHECK_ROOT is not set"
[[ -x $spack_root/bin/spack ]] || skip "$spack_root/bin/spack is not there"
[[ -e $builtin/repo.yaml ]] || skip "SPACK_CHECK_PACKAGES has no repos/spack_repo/builtin"
spack_python=/usr/bin/python3
PYTHONPATH=$python "$spack_python" -c 'import clingo' 2>/dev/null || skip "$spack_python does not find clingo"
[[ -e $tree/.git ]] || skip "$tree is not a git clone, from which Spack could fetch"
# Kedge would take these for misspelt options.
for variable in $(compgen -e | grep '^KEDGE_'); do unset "$variable"; done

export PYTHONPATH=$python SPACK_PYTHON=$spack_python
export SPACK_DISABLE_LOCAL_CONFIG=1 SPACK_USER_CONFIG_PATH=$work/user SPACK_USER_CACHE_PATH=$work/cache
export http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9  # a download fails at once
export CCACHE_BASEDIR=$work/stage CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir -p "$work/user" "$work/logs"

# What Spack is to fetch from: a clone whose HEAD is on no branch, with none called main, and an archive of it.
rm -rf "$work/clone" "$work/archive"
git clone --quiet "$tree" "$work/clone"
git -C "$work/clone" checkout --quiet --detach
git -C "$work/clone" branch --format='%(refname:short)' | grep -v '^(' | xargs -r git -C "$work/clone" branch --quiet -D
"$work/clone/share/kedge/archive" "$work/archive" >"$work/logs/archive.log"

# Of $combination: a configuration directory of its own; sets spec, scope and the parts' names.
configure() {
  local plain=${combination%%[~+]*} mpi_prefix hdf5 recipe=$work/clone
  variants=${combination#"$plain"}
  IFS=- read -r mpi kind libraries source <<<"$plain"
  scope=$work/config/$combination
  mkdir -p "$scope"
  local provider=${mpi/none/openmpi}
  mpi_prefix=$work/$provider
  mpi_prefix "$provider" "$mpi_prefix" || { echo "no $provider on this machine"; return 1; }
  hdf5=$(hdf5_prefix "$kind" "$provider") || { echo "no $kind HDF5 for $provider on this machine"; return 1; }
  packages_yaml "$here/packages.yaml.in" "$provider" "$kind" "$mpi_prefix" "$hdf5" >"$scope/packages.yaml" || return 1
  if [[ $variants == *+python* ]]; then
    python_yaml "$python" "$work/python" >>"$scope/packages.yaml" || return 1
  fi
  [[ $source == tree ]] || recipe=$work/archive
  cat >"$scope/repos.yaml" <<TEXT
repos::
  kedge: $recipe/spack/spack_repo/kedge
  builtin: $builtin
TEXT
  echo "bootstrap: {enable: false}" >"$scope/bootstrap.yaml"
  echo "concretizer: {reuse: false}" >"$scope/concretizer.yaml"
  echo "mirrors:: {}" >"$scope/mirrors.yaml"
  cat >"$scope/config.yaml" <<TEXT
config:
  install_tree: {root: $work/opt}
  build_stage: [$work/stage]
  test_stage: $work/test
  source_cache: $work/cache/source
  misc_cache: $work/cache/misc
  build_jobs: 2
  ccache: $(command -v ccache >/dev/null && echo true || echo false)
TEXT
  spec="kedge$([[ $mpi == none ]] && echo '~mpi' || echo '+mpi')$([[ $libraries == shared ]] && echo '+shared' || echo '~shared')$variants"
  [[ $mpi == none ]] || spec+=" ^$mpi"
  export combination scope spec mpi work spack_root  # for consumer.sh
}

in_spack() { "$spack_root/bin/spack" -C "$scope" "$@"; }

# step NAME COMMAND...: with its time; the output goes to a log, and is shown if the command fails.
step() {
  local name=$1 log=$work/logs/$combination-$1.log begin=$SECONDS status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  printf '  %-9s %4d s  %s\n' "$name" $((SECONDS - begin)) "$( ((status == 0)) && echo ok || echo "FAILED, see $log")"
  ((status == 0)) || { tail -n 40 "$log"; return 1; }
}

install() {
  local hash
  nice "$spack_root/bin/spack" -C "$scope" install --test=root --overwrite --yes-to-all -j2 "$spec" || return 1
  # Of this output: an earlier commit may be installed under the same spec.
  hash=$(sed -n 's/.*Successfully installed kedge-.*-\([a-z0-9]\{32\}\)$/\1/p' "$work/logs/$combination-install.log" | tail -n 1)
  [[ -n $hash ]] || { echo "nothing was installed"; return 1; }
  echo "$hash" >"$scope/hash"
  # Its tests ran, and with this HDF5: --test=root does nothing, without a word, on what was installed before.
  local log=$work/logs/$combination-build.log
  zcat -f "$(in_spack location -i "/$hash")"/.spack/spack-build-out.txt* >"$log"
  grep "HDF5 [0-9.]*, $kind: $(hdf5_prefix "$kind" "${mpi/none/openmpi}")" "$log" ||
    { echo "not configured with the $kind HDF5"; return 1; }
  grep "tests passed, 0 tests failed" "$log" || { echo "no tests ran after the installation"; return 1; }
  grep "Total Test time" "$log"
}

stand_alone() {
  local name=kedge-check-$combination
  in_spack test remove --yes-to-all "$name" >/dev/null 2>&1 || true
  in_spack test run --alias "$name" "/$(cat "$scope/hash")" || { in_spack test results --logs "$name"; return 1; }
  in_spack test results --logs "$name"
}

check() {
  step spec in_spack spec --long "$spec" && step install install &&
    step load "$here/consumer.sh" load && step consumer "$here/consumer.sh" consumer && step test stand_alone
}

echo "Spack $("$spack_root/bin/spack" --version), clingo $(PYTHONPATH=$python $spack_python -c 'import clingo; print(clingo.__version__)')," \
  "$(gcc --version | head -n 1), cmake $(cmake --version | grep -o '[0-9.]*[0-9]' | head -n 1)"
echo "commit $(git -C "$work/clone" rev-parse --short HEAD), $(sed "s|  .*/|  |" "$work/logs/archive.log")"
failed=0
for combination in "${combinations[@]}"; do
  configure || { failed=$((failed + 1)); continue; }
  echo "$combination: $spec, $mpi, $kind HDF5, from the $source"
  check || failed=$((failed + 1))
done
echo "$((${#combinations[@]} - failed)) passed, $failed failed"
((failed == 0))
