#!/usr/bin/env bash
# check.sh BUILD_DIRECTORY WORK_DIRECTORY CMAKE LAUNCH MPI_FORTRAN_COMPILER: the program of
# share/doc/fortran.md is built against an installed Kedge, with CMake and with pkg-config, and runs.
set -euo pipefail
build=$1 work=$2 cmake=$3 launcher=$4 compiler=$5
project=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$work"
mkdir -p "$work"

# The consumer sees a moved installation: nothing in it may name the place it was made for.
"$cmake" --install "$build" --prefix "$work/made" >"$work/install.log"
mv "$work/made" "$work/prefix"
[[ -f $work/prefix/include/kedge/fortran/kedge.mod ]] || { echo "kedge.mod was not installed"; exit 1; }

sed -n '/^```fortran$/,/^```$/p; /^```$/q' "$project/../../../../share/doc/fortran.md" | sed '/^```/d' >"$work/count_to_ten.f90"
grep -q "end program" "$work/count_to_ten.f90"

configure() {  # configure DIRECTORY LANGUAGES
  "$cmake" -S "$project" -B "$work/$1" -DCMAKE_PREFIX_PATH="$work/prefix" -DCONSUMER_LANGUAGES="$2" \
    -DCONSUMER_PROGRAM="$work/count_to_ten.f90" ${MPI-}
}
launch() {  # launch PROGRAM [ARGUMENT ...]: two ranks
  /usr/bin/python3 -B "$project/../launch.py" --output "$1" "$launcher" 2 "$work/run" "${@:2}"
}
expect() {  # expect OUTPUT WORDS
  grep -q "$2" <<<"$1" || { printf 'wanted "%s", got:\n%s\n' "$2" "$1"; exit 1; }
}

configure cmake "C;CXX;Fortran"
"$cmake" --build "$work/cmake"
mkdir -p "$work/run/prefix"
expect "$(launch "$work/cmake/count_to_ten")" "step 2, field 2.0"
expect "$(launch "$work/cmake/count_to_ten")" "step 4, field 4.0"

# A project that lacks a language is told which.
for languages in "Fortran" "C;CXX"; do
  if configure refused "$languages" >"$work/refused.log" 2>&1; then
    echo "LANGUAGES $languages was taken"
    exit 1
  fi
  expect "$(tr -s ' \n' ' ' <"$work/refused.log")" "project(... LANGUAGES C CXX Fortran)"
  rm -rf "$work/refused"
done

# A project whose Fortran compiler brings another MPI, where there is one (Debian's names).
other=mpif90.mpich
[[ $("$compiler" -show) != *mpich* ]] || other=mpif90.openmpi
if command -v $other >/dev/null; then
  if MPI=-DMPI_Fortran_COMPILER=$(command -v $other) configure refused "C;CXX;Fortran" >"$work/refused.log" 2>&1; then
    echo "the Fortran wrapper of another MPI was taken"
    exit 1
  fi
  expect "$(tr -s ' \n' ' ' <"$work/refused.log")" "the Fortran compiler's MPI is .*MPI_Fortran_COMPILER=$(command -v $other)"
  rm -rf "$work/refused"
fi

rm -rf "$work/run"  # each program begins a run of its own
# The installed examples are a project of their own, where there is a Fortran compiler with heat_fortran.
"$cmake" -S "$work/prefix/share/kedge/examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$work/prefix"
"$cmake" --build "$work/examples" --target heat_fortran
mkdir -p "$work/run/prefix"
expect "$(launch "$(find "$work/examples" -name heat_fortran -type f)" --rows 8 --columns 8 --steps 6)" "steps computed 6"
rm -rf "$work/run"
mkdir -p "$work/run/prefix"

pc=$(find "$work/prefix" -name kedge-fortran.pc)
[[ -n $pc ]] || { echo "kedge-fortran.pc was not installed"; exit 1; }
export PKG_CONFIG_PATH=${pc%/*}
[[ $(pkg-config --variable=mpifort kedge-fortran) == "$compiler" ]] || { echo "kedge-fortran.pc names another compiler"; exit 1; }
read -ra flags < <(pkg-config --cflags --libs kedge-fortran)
"$compiler" "$work/count_to_ten.f90" -o "$work/by_pkg_config" "${flags[@]}" -Wl,-rpath,"${pc%/pkgconfig/*}"
expect "$(launch "$work/by_pkg_config")" "step 2, field 2.0"
