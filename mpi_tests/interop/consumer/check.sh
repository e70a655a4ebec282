#!/usr/bin/env bash
# check.sh BUILD_DIRECTORY WORK_DIRECTORY WITH_MPI CMAKE LAUNCH: a user's project is built against an
# installed Kedge that was moved, and runs; one that asks for an unknown component, or has another MPI, is told so; pages
# and completions are there.
set -euo pipefail
build=$1 work=$2 with_mpi=$3 cmake=$4 launch=$5
project=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$work"
mkdir -p "$work"

# The consumer sees a moved installation: nothing in it may name the place it was made for.
"$cmake" --install "$build" --prefix "$work/made" >"$work/install.log"
prefix="$work/a prefix"
mv "$work/made" "$prefix"
"$prefix/bin/kedge" --version
for completion in bash-completion/completions/kedge zsh/site-functions/_kedge fish/vendor_completions.d/kedge.fish; do
  grep -q verify "$prefix/share/$completion" || { echo "no completion in share/$completion"; exit 1; }
done
for file in share/kedge/kedge.toml share/man/man1/kedge.1 include/kedge/kedge.hpp include/kedge/kedge.h \
    include/kedge/testing/in_process_job.hpp share/doc/kedge/LICENSE share/doc/kedge/README.md share/doc/kedge/CHANGELOG.md share/kedge/examples/heat2d/main.cpp; do
  [[ -f $prefix/$file ]] || { echo "$file was not installed"; exit 1; }
done
grep -q "Built with\(out MPI\|.* (.*): load that MPI's module as well\)\.]]" "$prefix"/share/kedge/modulefiles/kedge/*.lua ||
  { echo "no modulefile was installed, or it does not say which MPI"; exit 1; }
/usr/bin/python3 -B "$project/../../docs/links_test.py" --installed "$prefix/share/doc/kedge"
for header in mpi.hpp kedge_mpi.h mpi_family.h; do
  if [[ $with_mpi != 1 && -e $prefix/include/kedge/$header ]]; then
    echo "kedge/$header was installed without MPI"
    exit 1
  fi
done
if grep -rIl "$build" "$prefix/lib"*/cmake "$prefix/lib"*/pkgconfig; then
  echo "the package names the build directory"
  exit 1
fi

configure() { "$cmake" -S "$project" -B "$work/$1" -DCMAKE_PREFIX_PATH="$prefix" -DCONSUMER_MPI="$2" && "$cmake" --build "$work/$1"; }
# Into a staging directory, as packagers do.
DESTDIR=$work/staged "$cmake" --install "$build" --prefix /opt/kedge >"$work/staged.log"
[[ -f $work/staged/opt/kedge/include/kedge/kedge.hpp ]] || { echo "DESTDIR was ignored"; exit 1; }
rm -rf "$work/staged"

# refused WORDS CONFIGURE_ARGUMENTS...: a project that is told so.
refused() {
  local words=$1 said
  shift
  rm -rf "$work/refused"
  if said=$("$cmake" -S "$project/refused" -B "$work/refused" -DCMAKE_PREFIX_PATH="$prefix" "$@" 2>&1); then
    echo "a project was not refused with: $words"
    exit 1
  fi
  # CMake breaks lines.
  tr -s ' \n' ' ' <<<"$said" | grep -q -F "$words" || { echo "$said"; echo "it was not told: $words"; exit 1; }
}

cd "$work"
refused "write project(... LANGUAGES C CXX)" -DREFUSED_LANGUAGES=C -DREFUSED_COMPONENTS=core
[[ $with_mpi == 1 ]] || refused "this Kedge was built without MPI" -DREFUSED_LANGUAGES="C;CXX" -DREFUSED_COMPONENTS=kedge
refused "Kedge has no component 'kegde'; it has core, testing, kedge, c and fortran" -DREFUSED_LANGUAGES="C;CXX" \
  -DREFUSED_COMPONENTS="core;kegde"
configure core OFF
core/without_mpi
core/without_mpi_c
core/killed_rank "$work/killed_rank"
if [[ $with_mpi == 1 ]]; then
  configure mpi ON
  export KEDGE_STORE_PATH=$work/store KEDGE_PERSISTENT_PATH=$work/checkpoints
  launch() { timeout --kill-after=5 60 "$launch" -n 2 "mpi/$1"; }
  launch with_mpi | grep "was none, is 1"
  launch with_mpi | grep "was step-1, is 2"
  "$prefix/bin/kedge" verify "$work"/store/kedge-*
  launch with_mpi_c | grep "is 3: well"  # the same run, from C
fi

# A static Kedge takes the application's HDF5 also where it asked for another language's library alone.
if [[ -n $(find "$prefix" -name libkedge_core.a) ]]; then
  refused "this static Kedge is linked with spdlog, which was not found: install it (Debian: libspdlog-dev; Spack: spdlog), or add" -DREFUSED_LANGUAGES="C;CXX" \
    -DREFUSED_COMPONENTS=core -DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON
  "$cmake" -S "$project" -B "$work/hdf5_cxx" -DCMAKE_PREFIX_PATH="$prefix" -DCONSUMER_HDF5=CXX >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  if grep -q "^HDF5_CXX_LIBRARY_hdf5_cpp:.*=/" "$work/hdf5_cxx/CMakeCache.txt"; then
    grep -rq "libhdf5_cpp" "$work/hdf5_cxx/build.ninja" "$work/hdf5_cxx"/CMakeFiles/without_mpi.dir/link.txt 2>/dev/null ||
      { cat "$work/log"; echo "the HDF5 that the project has found was not taken"; exit 1; }
  fi
fi

if [[ $with_mpi == 1 ]]; then
  # Without CMake, and from an installation in a path with a space.
  export PKG_CONFIG_PATH=$(echo "$prefix"/lib*/pkgconfig)
  mpicxx=$(pkg-config --variable=mpicxx kedge) family=$(pkg-config --variable=mpi kedge)
  mkdir "$work/make"
  export LD_LIBRARY_PATH=$(dirname "$(ls "$prefix"/lib*/libkedge_core.* | head -n 1)")  # where libraries are shared
  make -s -C "$work/make" -f "$project/makefile/Makefile" SOURCES="$project"
  timeout --kill-after=5 60 "$launch" -n 2 "$work/make/with_mpi" | grep "was step, is 4"
  # What a batch system sets, but for what would make the launcher ask Slurm for nodes.
  PBS_JOBID=7.here timeout --kill-after=5 60 "$launch" -n 2 "$work/make/with_mpi_c" | grep "is 5: well"
  # The store that this left, as slurmd calls the epilog.
  env -i SLURM_JOB_ID=7.here STORE_ROOTS="$work/store" SLURM_JOB_USER="$(id -un)" SLURM_JOB_UID="$(id -u)" "$prefix/share/kedge/slurm/epilog.sh"
  [[ -z $(find "$work/store" -name 'kedge-*') ]] || { echo "the epilog did not free the store"; exit 1; }
  # The examples, by themselves.
  "$cmake" -S "$prefix/share/kedge/examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$prefix" \
    -DMPI_CXX_COMPILER="$mpicxx" >"$work/examples.log"
  "$cmake" --build "$work/examples" --target heat_c

  refused "MPI_CXX_COMPILER=mpicxx.nowhere did not lead to an MPI: set it to the compiler wrapper of the MPI that" \
    -DREFUSED_LANGUAGES="C;CXX" -DREFUSED_COMPONENTS=kedge -DMPI_CXX_COMPILER=mpicxx.nowhere
  # An HDF5 of the other MPI: a library that needs one of its name.
  soname=libmpi.so.40 name="Open MPI"
  [[ $family != open_mpi ]] || soname=libmpich.so.12 name=MPICH
  echo "int kedge_no_mpi;" | cc -shared -fPIC -Wl,-soname,$soname -o "$work/$soname" -x c -
  echo "int kedge_no_hdf5;" | cc -shared -fPIC -Wl,--no-as-needed -o "$work/libhdf5.so" -x c - -x none "$work/$soname"
  [[ $family == another_mpi ]] || refused "this project has found an HDF5 that was built with $name" \
    -DREFUSED_LANGUAGES="C;CXX" -DREFUSED_COMPONENTS=kedge -DREFUSED_HDF5="$work/libhdf5.so"

  # Another MPI than Kedge's: in words from CMake, and it does not link.
  other=$(command -v mpicxx.mpich || true)
  [[ $family != mpich ]] || other=$(command -v mpicxx.openmpi || true)
  if [[ -n $other ]]; then
    for_mpi=(-DREFUSED_LANGUAGES="C;CXX" -DREFUSED_COMPONENTS=kedge)
    refused "build both with the same MPI, e.g. -DMPI_CXX_COMPILER=$mpicxx, in" "${for_mpi[@]}" -DMPI_CXX_COMPILER="$other"
    refused "the C compiler's MPI is" "${for_mpi[@]}" -DREFUSED_FINDS_C_FIRST=ON -DMPI_C_COMPILER="${other/cxx/cc}"
    # Where the project's own compiler is the wrapper, MPI_CXX_COMPILER changes nothing.
    refused "set CMAKE_CXX_COMPILER to the compiler without MPI, or to" "${for_mpi[@]}" -DCMAKE_CXX_COMPILER="$other"
    refused "build both with the same MPI, by CMAKE_CXX_COMPILER: the compiler without MPI, or" "${for_mpi[@]}" \
      -DCMAKE_CXX_COMPILER="$other" -DMPI_CXX_COMPILER="$other"
    if said=$(make -s -C "$work/make" -f "$project/makefile/Makefile" SOURCES="$project" -B CXX="$other" with_mpi 2>&1); then
      echo "a program of another MPI was linked"
      exit 1
    fi
    grep -q "undefined reference to .*built_with_" <<<"$said" || { echo "$said"; exit 1; }
    # The MPI that Kedge was built with is gone, and the first of the PATH is another one.
    package=$(dirname "$(find "$prefix" -name kedgeMpi.cmake)")
    cp "$package/kedgeMpi.cmake" "$work/kedgeMpi.cmake"
    sed -i "s|\"$mpicxx\"|\"/nowhere/mpicxx\"|" "$package/kedgeMpi.cmake"
    refused "(/nowhere/mpicxx, which is no longer there), but this project uses" "${for_mpi[@]}" -DMPI_CXX_COMPILER="$other"
    cp "$work/kedgeMpi.cmake" "$package/kedgeMpi.cmake"
  else
    echo "there is no other MPI here: a program of another one was not tried"
  fi
fi
