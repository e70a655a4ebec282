# shellcheck shell=bash
# What this machine has, as Spack's externals: read by check.sh. Debian's names of two MPI side by side are known here.

# mpi_prefix NAME DIRECTORY: a prefix with the commands of that MPI alone under their plain names; fails if it is not here.
mpi_prefix() {
  local name=$1 directory=$2 command file found
  mkdir -p "$directory/bin"
  for command in mpicc mpicxx mpic++ mpiexec mpirun mpif77 mpif90 mpifort; do
    file=$(command -v "$command.$name") || continue
    ln -sf "$file" "$directory/bin/$command"
    found=1
  done
  [[ -n ${found-} ]] || return 1
  # What their launchers look for beside themselves.
  local helpers=(orted ompi_info)
  [[ $name == openmpi ]] || helpers=(mpiexec.hydra hydra_pmi_proxy hydra_nameserver)
  for command in "${helpers[@]}"; do
    file=$(command -v "$command") && ln -sf "$file" "$directory/bin/$command"
  done
  # Spack asks for its header and library, where the compiler command says that they are.
  local shown include libraries
  shown=$("$directory/bin/mpicc" -show) || return 1
  include=$(grep -o -- '-I[^ ]*' <<<"$shown" | head -n 1) libraries=$(grep -o -- '-L[^ ]*' <<<"$shown" | head -n 1)
  [[ -e ${include#-I}/mpi.h ]] || return 1
  ln -sfn "${include#-I}" "$directory/include"
  rm -rf "$directory/lib"
  mkdir -p "$directory/lib"
  ln -s "${libraries#-L}/lib${name/openmpi/mpi}"*.so* "$directory/lib/"  # in the same place as the other MPI's, perhaps
}

mpi_version() {
  case $1 in
    openmpi) "$2/bin/mpiexec" --version | grep -o '[0-9][0-9.]*' | head -n 1 ;;
    mpich) "$2/bin/mpiexec" --version | sed -n 's/^ *Version: *\([0-9.]*\).*/\1/p' ;;
  esac
}

# hdf5_prefix KIND MPI: where Debian has it.
hdf5_prefix() {
  local kind=$1 multiarch
  [[ $kind == serial ]] || kind=$2
  multiarch=$(gcc -print-multiarch)
  [[ -e /usr/lib/$multiarch/hdf5/$kind/include/hdf5.h ]] && echo "/usr/lib/$multiarch/hdf5/$kind"
}

header_version() { grep -h "#define *$2 " $1 | grep -o '[0-9][0-9.]*[0-9]' | head -n 1; }

# packages_yaml TEMPLATE MPI KIND_OF_HDF5 MPI_PREFIX HDF5_PREFIX: on standard output.
packages_yaml() {
  local template=$1 mpi=$2 kind=$3 mpi_prefix=$4 hdf5_prefix=$5 languages=c,c++ compilers gcc_fortran boost
  compilers="          c: $(command -v gcc)\n          cxx: $(command -v g++)"
  if gcc_fortran=$(command -v gfortran); then
    languages+=,fortran
    compilers+="\n          fortran: $gcc_fortran"
  fi
  boost=$(header_version /usr/include/boost/version.hpp BOOST_VERSION)  # 107400 is 1.74.0
  local pairs=(
    MPI_NAME="$mpi" MPI_VERSION="$(mpi_version "$mpi" "$mpi_prefix")" MPI_PREFIX="$mpi_prefix"
    HDF5_VERSION="$(header_version "$hdf5_prefix/include/H5pubconf*.h" H5_VERSION)" HDF5_PREFIX="$hdf5_prefix"
    HDF5_VARIANTS="$([[ $kind == parallel ]] && echo +mpi || echo '~mpi')"
    GCC_VERSION="$(gcc -dumpfullversion)" GCC_LANGUAGES="$languages" GCC_COMPILERS="$compilers"
    CMAKE_VERSION="$(cmake --version | grep -o '[0-9.]*[0-9]' | head -n 1)"
    GMAKE_VERSION="$(make --version | grep -o '[0-9.]*[0-9]' | head -n 1)"
    BOOST_VERSION="$((boost / 100000)).$((boost / 100 % 1000)).$((boost % 100))"
    CLI11_VERSION="$(pkg-config --modversion CLI11)" FMT_VERSION="$(pkg-config --modversion fmt)"
    ISAL_VERSION="$(pkg-config --modversion libisal)" LIBURING_VERSION="$(pkg-config --modversion liburing)"
    JSON_VERSION="$(pkg-config --modversion nlohmann_json)" SPDLOG_VERSION="$(pkg-config --modversion spdlog)"
    TOMLPLUSPLUS_VERSION="$(pkg-config --modversion tomlplusplus)"
    GTEST_VERSION="$(pkg-config --modversion gmock)" BENCHMARK_VERSION="$(pkg-config --modversion benchmark)"
  )
  local pair script=""
  for pair in "${pairs[@]}"; do
    [[ ${pair#*=} =~ [^.] ]] || { echo "this machine does not say: ${pair%%=*}" >&2; return 1; }
    script+="s|@${pair%%=*}@|${pair#*=}|g;"
  done
  sed "$script" "$template"
}

# python_yaml NANOBIND_PARENT PREFIX: what the variant python needs, on standard output. NumPy is Debian's; nanobind, which
# Debian 12 does not have, lies where pip has put clingo.
python_yaml() {
  local directory=$1 prefix=$2 version packages numpy nanobind
  version=$(/usr/bin/python3 -c 'import platform; print(platform.python_version())')
  numpy=$(/usr/bin/python3 -c 'import numpy; print(numpy.__version__)') || { echo "no NumPy for /usr/bin/python3" >&2; return 1; }
  [[ -d $directory/nanobind ]] || { echo "no nanobind in $directory: add it with pip install --target" >&2; return 1; }
  nanobind=$(cd "$directory" && echo nanobind-*.dist-info) nanobind=${nanobind#nanobind-} nanobind=${nanobind%.dist-info}
  # A link each, so that no other package is seen, where Spack looks: as this Python says, and as its environments do.
  packages=$prefix$(/usr/bin/python3 -c "import sysconfig as s; print(s.get_path('platlib', vars=dict(base='', platbase='')))")
  rm -rf "$prefix" && mkdir -p "$packages" "$prefix/lib/python${version%.*}"
  ln -s "$directory/nanobind" "$(/usr/bin/python3 -c 'import os, numpy; print(os.path.dirname(numpy.__file__))')" "$packages/"
  ln -s "$packages" "$prefix/lib/python${version%.*}/site-packages"
  cat <<TEXT
  python-venv:  # made by the Python
    buildable: true
  python:
    externals: [{spec: "python@$version", prefix: /usr}]
  py-numpy:
    externals: [{spec: "py-numpy@$numpy", prefix: $prefix}]
  py-nanobind:
    externals: [{spec: "py-nanobind@$nanobind", prefix: $prefix}]
TEXT
}
